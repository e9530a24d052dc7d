// SHA-256 (FIPS 180-4), for the check of kernel files before they are opened as code.
#ifndef COMPOSITE_RUNTIME_BASE_SHA256_H_
#define COMPOSITE_RUNTIME_BASE_SHA256_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace composite {

class Sha256 {
 public:
  void Update(const void* data, size_t size);
  // 64 lower-case hex digits. The object is spent afterwards.
  std::string HexDigest();

 private:
  void Block(const uint8_t* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t buffer_[64];
  uint64_t size_ = 0;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_SHA256_H_
