#include "composite/runtime/kernels/options.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "tensorflow/core/util/determinism.h"

namespace composite {
namespace {

constexpr const char* kBackends[] = {"", "auto", "tvm", "tf"};
constexpr const char* kNumerics[] = {"", "fast", "strict", "invariant"};

template <typename Enum, size_t n>
absl::StatusOr<Enum> Parse(absl::string_view value, const char* what,
                           const char* const (&names)[n]) {
  for (size_t i = 0; i < n; ++i) {
    if (value == names[i]) return static_cast<Enum>(i);
  }
  std::string known;
  for (size_t i = 1; i < n; ++i) absl::StrAppend(&known, i == 1 ? "\"" : ", \"", names[i], "\"");
  return absl::InvalidArgumentError(
      absl::StrCat(what, " \"", value, "\" is unknown; write one of ", known));
}

constexpr char kNeverText[] = "never";
constexpr double kMostSeconds = 1e6;

absl::StatusOr<int32_t> ParseXlaWait(absl::string_view value) {
  if (value.empty()) return kXlaUnset;
  if (value == kNeverText) return kXlaNever;
  double seconds = 0;
  if (absl::SimpleAtod(value, &seconds) && seconds >= 0 && seconds <= kMostSeconds) {
    return static_cast<int32_t>(seconds * 1000);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "xla \"", value, "\" is unknown; write \"never\" or a number of seconds, 0 or more"));
}

absl::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

struct ProcessDefault {
  absl::Status environment;
  std::atomic<Options> options;
};

ProcessDefault& Default() {
  static ProcessDefault* process = [] {
    auto* made = new ProcessDefault{absl::OkStatus(), Options{}};
    absl::StatusOr<Options> options =
        ParseOptions(Environment("COMPOSITE_BACKEND"), Environment("COMPOSITE_NUMERICS"),
                     Environment("COMPOSITE_XLA"));
    if (options.ok()) {
      made->options = *options;
    } else {
      made->environment = absl::InvalidArgumentError(
          absl::StrCat("Environment variable COMPOSITE_BACKEND, COMPOSITE_NUMERICS or "
                       "COMPOSITE_XLA: ",
                       options.status().message()));
    }
    return made;
  }();
  return *process;
}

}  // namespace

Options Options::Or(const Options& other) const {
  Options merged = *this;
  if (backend == Backend::kUnset) merged.backend = other.backend;
  if (numerics == Numerics::kUnset) merged.numerics = other.numerics;
  if (xla_wait == kXlaUnset) merged.xla_wait = other.xla_wait;
  return merged;
}

absl::StatusOr<Options> ParseOptions(absl::string_view backend, absl::string_view numerics,
                                     absl::string_view xla) {
  absl::StatusOr<Backend> parsed_backend = Parse<Backend>(backend, "backend", kBackends);
  if (!parsed_backend.ok()) return parsed_backend.status();
  absl::StatusOr<Numerics> parsed_numerics = Parse<Numerics>(numerics, "numerics", kNumerics);
  if (!parsed_numerics.ok()) return parsed_numerics.status();
  absl::StatusOr<int32_t> parsed_xla = ParseXlaWait(xla);
  if (!parsed_xla.ok()) return parsed_xla.status();
  return Options{*parsed_backend, *parsed_numerics, *parsed_xla};
}

const char* Name(Backend backend) { return kBackends[static_cast<int>(backend)]; }
const char* Name(Numerics numerics) { return kNumerics[static_cast<int>(numerics)]; }

std::string XlaWaitText(int32_t xla_wait) {
  if (xla_wait == kXlaUnset) return "";
  if (xla_wait == kXlaNever) return kNeverText;
  return absl::StrCat(xla_wait / 1000.0);
}

absl::StatusOr<Options> NodeOptions(tensorflow::AttrSlice attrs) {
  const tensorflow::AttrValue* backend = attrs.Find(kBackendAttr);
  const tensorflow::AttrValue* numerics = attrs.Find(kNumericsAttr);
  const tensorflow::AttrValue* xla = attrs.Find(kXlaWaitAttr);
  return ParseOptions(backend != nullptr ? backend->s() : "",
                      numerics != nullptr ? numerics->s() : "", xla != nullptr ? xla->s() : "");
}

absl::StatusOr<Options> ProcessOptions() {
  ProcessDefault& process = Default();
  const Options options = process.options.load(std::memory_order_relaxed);
  if (!process.environment.ok() && options.backend == Backend::kUnset) return process.environment;
  return options;
}

void SetProcessOptions(const Options& options) {
  Default().options.store(options, std::memory_order_relaxed);
}

Options& ThreadOptions() {
  thread_local Options options;
  return options;
}

bool JitAllowed() {
  static const bool allowed = [] {
    const char* value = std::getenv("COMPOSITE_JIT");
    return value == nullptr || absl::string_view(value) != "0";
  }();
  return allowed;
}

bool DeterminismRequired() {
  static ForkMutex& mu = *new ForkMutex;  // threads may ask while static objects go
  absl::ReaderMutexLock lock(mu);
  return tensorflow::OpDeterminismRequired();
}

}  // namespace composite
