#include "composite/runtime/standalone/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "composite/runtime/base/cpu_level.h"
#include "composite/runtime/base/sha256.h"

namespace composite {
namespace standalone {
namespace {

constexpr size_t kDigestLength = 64;
#if defined(__aarch64__)
constexpr char kFileEnd[] = "_kernels.aarch64.so";
#else
constexpr char kFileEnd[] = "_kernels.so";
#endif

struct File {
  std::string name;
  std::string digest;
};

// The manifest is JSON of a fixed layout: `"lib<name>_kernels.so": "<sha256>"` stands among its
// files, and another such line for each other architecture.
bool FindFile(const std::string& folder, File* file, Failure* failure) {
  const std::string path = folder + "/manifest.json";
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return failure->Set(kNotFound, folder + " holds no built library: it has no manifest.json");
  }
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const std::string mark = std::string(kFileEnd) + "\": \"";
  const size_t at = text.find(mark);
  const size_t begin = at == std::string::npos ? at : text.rfind('"', at);
  const size_t digest = at + mark.size();
  if (begin == std::string::npos || digest + kDigestLength > text.size()) {
    return failure->Set(kFailedPrecondition,
                        path +
                            " names no kernels for processes without TensorFlow on this CPU: build "
                            "the library again");
  }
  file->name = text.substr(begin + 1, at - begin - 1) + kFileEnd;
  file->digest = text.substr(digest, kDigestLength);
  if (file->name.find('/') == std::string::npos) return true;
  return failure->Set(
      kDataLoss, path + " names \"" + file->name + "\", which is not a file of its own folder");
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  // The number, which nobody closes from here on.
  int Keep() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::string Digest(int descriptor) {
  Sha256 hash;
  std::vector<char> block(1 << 16);
  ssize_t size;
  while ((size = read(descriptor, block.data(), block.size())) > 0) hash.Update(block.data(), size);
  return size == 0 ? hash.HexDigest() : "";
}

void* Map(const std::string& path, const std::string& digest, Failure* failure) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.number() < 0) {
    failure->Set(kNotFound, path + " cannot be opened (" + std::strerror(errno) +
                                "): build the library again");
    return nullptr;
  }
  if (Digest(file.number()) != digest) {
    failure->Set(kDataLoss, path +
                                " is not what manifest.json says (its hash differs): it is "
                                "damaged or was changed; build the library again");
    return nullptr;
  }
  // By the descriptor that was checked. dlopen compares names before it looks at files, so the
  // number stays taken, and the name is one that nobody else gives a library.
  const std::string name = "/proc/thread-self/fd/" + std::to_string(file.Keep());
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    failure->Set(kFailedPrecondition, path + " cannot be mapped: " + dlerror());
  return library;
}

bool IsBetter(const Kernel* a, const Kernel* b) {
  const int a_level = LevelOf(a->isa), b_level = LevelOf(b->isa);
  return a_level != b_level ? a_level > b_level : a->symbols < b->symbols;
}

}  // namespace

std::unique_ptr<Library> Library::Open(const std::string& folder, Failure* failure) {
  File file;
  if (!FindFile(folder, &file, failure)) return nullptr;
  const std::string path = folder + "/" + file.name;
  void* library = Map(path, file.digest, failure);
  if (library == nullptr) return nullptr;
  const auto* table = static_cast<const Table*>(dlsym(library, kTableSymbol));
  if (table == nullptr || table->version != kTableVersion) {
    failure->Set(kFailedPrecondition, path + " was built by another version: build it again");
    return nullptr;
  }
  tvm_abi::FillSlots({table->parallel_launch, table->parallel_barrier, table->alloc_workspace,
                      table->free_workspace});
  *table->raise = &tvm_abi::RaiseParts;
  return std::unique_ptr<Library>(new Library(folder, table));
}

const Op* Library::FindOp(const std::string& name) const {
  const Op* end = table_->ops + table_->count;
  const Op* found = std::find_if(
      table_->ops, end, [&](const Op& op) { return name == op.python_name || name == op.name; });
  return found == end ? nullptr : found;
}

const Function* Library::Find(const std::string& name, const char* attributes,
                              Failure* failure) const {
  const Op* op = FindOp(name);
  if (op == nullptr) {
    std::string known;
    for (int i = 0; i < table_->count; ++i) {
      known += (i == 0 ? "" : ", ") + std::string(table_->ops[i].python_name);
    }
    failure->Set(kNotFound, "the library in " + folder_ + " has no op \"" + name + "\": " + known);
    return nullptr;
  }
  if (attributes == nullptr) attributes = op->defaults;
  if (attributes == nullptr) {
    failure->Set(kInvalidArgument, name + " has attributes without defaults: give them");
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(mu_);
  std::unique_ptr<Function>& function = functions_[{op, attributes}];
  if (function == nullptr) function = Make(*op, attributes, failure);
  return function.get();
}

std::unique_ptr<Function> Library::Make(const Op& op, const std::string& attributes,
                                        Failure* failure) const {
  const int level = LevelOfCpu();
  std::vector<const Kernel*> kernels;
  std::string excluded;
  for (int i = 0; i < op.count; ++i) {
    const Kernel& kernel = op.kernels[i];
    if (attributes != kernel.attributes) continue;
    std::string why = ExcludedLevel(kernel.isa, level);
    if (why.empty()) {
      kernels.push_back(&kernel);
    } else {
      excluded = "; there is one, but " + why;
    }
  }
  if (kernels.empty()) {
    failure->Set(kNotFound, "the library in " + folder_ + " has no kernel of " + op.python_name +
                                " with the attributes " + attributes + excluded +
                                "; build it with a signature for such calls");
    return nullptr;
  }
  std::stable_sort(kernels.begin(), kernels.end(), IsBetter);
  return std::unique_ptr<Function>(new Function(op.python_name, std::move(kernels)));
}

}  // namespace standalone
}  // namespace composite
