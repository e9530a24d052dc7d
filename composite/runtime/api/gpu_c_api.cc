#include "composite/runtime/api/gpu_c_api.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/cuda/image.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/run/gpu_device.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::NodeDef;

constexpr size_t kGuard = 64;  // bytes in front of an argument and behind it
constexpr char kGuardByte = static_cast<char>(0xA5);
constexpr void* kDefaultStream = nullptr;

absl::Status CheckCall(const composite_gpu_call* call) {
  if (call == nullptr) return absl::InvalidArgumentError("call: a null pointer");
  if (call->size != sizeof(composite_gpu_call)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "call.size: ", call->size, ", and this runtime's is ", sizeof(composite_gpu_call)));
  }
  if (call->record == nullptr) return absl::InvalidArgumentError("call.record: a null pointer");
  if (call->image == nullptr) return absl::InvalidArgumentError("call.image: a null pointer");
  if (call->arguments == nullptr && call->count > 0) {
    return absl::InvalidArgumentError("call.arguments: a null pointer");
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelRecord> RecordOf(const composite_gpu_call& call) {
  NodeDef node;
  if (!node.ParseFromArray(call.record, static_cast<int>(call.record_size))) {
    return absl::InvalidArgumentError("call.record: no NodeDef");
  }
  absl::StatusOr<KernelRecord> record = ParseKernelRecord(node);
  if (!record.ok()) return record;
  if (!record->launches.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", record->name, " is for no GPU"));
  }
  const size_t wanted = record->in_shapes.ranks.size() + record->out_shapes.size();
  if (call.count != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("call.count: ", call.count, ", and kernel ", record->name, " has ", wanted));
  }
  return record;
}

absl::StatusOr<CudaDevice> GpuOf(const CudaDriver& driver, const KernelRecord& record) {
  for (int i = 0;; ++i) {
    absl::StatusOr<CudaDevice> gpu = driver.DeviceAt(i);
    if (absl::IsNotFound(gpu.status())) {
      return absl::FailedPreconditionError(absl::StrCat("no GPU is a ", record.device));
    }
    if (!gpu.ok() || DeviceOf(*gpu).name() == record.device) return gpu;
  }
}

absl::StatusOr<SymbolValues> SymbolsOf(const KernelRecord& record, const composite_array* inputs) {
  Signature call;
  for (size_t i = 0; i < record.in_shapes.ranks.size(); ++i) {
    const bool of_value = record.in_shapes.ranks[i] == Signature::kOfValue && inputs[i].rank == 1;
    call.ranks.push_back(of_value ? Signature::kOfValue : inputs[i].rank);
    call.dims.insert(call.dims.end(), inputs[i].shape, inputs[i].shape + inputs[i].rank);
  }
  SymbolValues values;
  if (!Match(record.in_shapes, call, &values) || !record.Admits(values)) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", record.name, " is for ",
                                                   ToString(record.in_shapes), " and not for ",
                                                   ToString(call)));
  }
  return values;
}

// Memory of a GPU with guards around what is used of it, as long as this object lives.
class Room {
 public:
  Room(const CudaDriver& driver, size_t bytes, size_t offset)
      : driver_(driver),
        bytes_(bytes),
        offset_(kGuard + offset),
        content_(bytes + offset_ + kGuard, kGuardByte),
        memory_(driver.Allocate(content_.size())) {}
  ~Room() {
    if (memory_.ok()) driver_.Free(*memory_).IgnoreError();
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  void* address() const { return static_cast<char*>(*memory_) + offset_; }

  absl::Status Fill(const void* data) {
    if (!memory_.ok()) return memory_.status();
    if (data != nullptr && bytes_ > 0) {
      const char* first = static_cast<const char*>(data);
      std::copy(first, first + bytes_, content_.begin() + offset_);
    }
    return driver_.CopyToDevice(*memory_, content_.data(), content_.size(), kDefaultStream);
  }

  absl::Status Read(void* data) {
    absl::Status status =
        driver_.CopyToHost(content_.data(), *memory_, content_.size(), kDefaultStream);
    if (!status.ok()) return status;
    const auto first = content_.begin() + offset_, last = first + bytes_;
    const auto is_guard = [](char byte) { return byte == kGuardByte; };
    if (!std::all_of(content_.begin(), first, is_guard) ||
        !std::all_of(last, content_.end(), is_guard)) {
      return absl::DataLossError("the kernel wrote outside its output");
    }
    std::copy(first, last, static_cast<char*>(data));
    return status;
  }

 private:
  const CudaDriver& driver_;
  const size_t bytes_;
  const size_t offset_;
  std::vector<char> content_;
  const absl::StatusOr<void*> memory_;
};

using Rooms = std::vector<std::unique_ptr<Room>>;

bool IsAligned(const LaunchPlan& plan, LaunchArgument::Kind kind, int index) {
  return std::any_of(plan.aligned.begin(), plan.aligned.end(), [&](const LaunchArgument& one) {
    return one.kind == kind && one.index == index;
  });
}

std::vector<void*> AddressesOf(const Rooms& rooms) {
  std::vector<void*> addresses;
  for (const auto& room : rooms) addresses.push_back(room->address());
  return addresses;
}

// Places for arrays, filled with what these hold.
absl::StatusOr<Rooms> Place(const CudaDriver& driver, const LaunchPlan& plan,
                            LaunchArgument::Kind kind, absl::Span<const composite_array> arrays) {
  Rooms rooms;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const composite_array& array = arrays[i];
    tensorflow::TensorShape shape;
    absl::Status status = tensorflow::TensorShape::BuildTensorShape(
        absl::MakeConstSpan(array.shape, array.rank), &shape);
    if (!status.ok()) return status;
    const int item = tensorflow::DataTypeSize(static_cast<tensorflow::DataType>(array.dtype));
    const size_t bytes = static_cast<size_t>(shape.num_elements()) * item;
    const bool aligned = IsAligned(plan, kind, static_cast<int>(i));
    rooms.push_back(std::make_unique<Room>(driver, bytes, aligned ? 0 : item));
    status = rooms.back()->Fill(array.data);
    if (!status.ok()) return status;
  }
  return rooms;
}

absl::StatusOr<Rooms> PlaceWorkspaces(const CudaDriver& driver, const LaunchPlan& plan,
                                      const SymbolValues& values) {
  Rooms rooms;
  for (const DimExpression& expression : plan.workspaces) {
    absl::StatusOr<int64_t> bytes = expression.Evaluate(values);
    if (!bytes.ok()) return bytes.status();
    rooms.push_back(std::make_unique<Room>(driver, *bytes, 0));
    absl::Status status = rooms.back()->Fill(nullptr);
    if (!status.ok()) return status;
  }
  return rooms;
}

absl::Status CallOnGpu(const composite_gpu_call* call) {
  absl::Status status = CheckCall(call);
  if (!status.ok()) return status;
  absl::StatusOr<KernelRecord> record = RecordOf(*call);
  if (!record.ok()) return record.status();
  absl::StatusOr<SymbolValues> values = SymbolsOf(*record, call->arguments);
  if (!values.ok()) return values.status();
  const auto& opened = CudaDriver::Get();
  if (!opened.ok()) return opened.status();
  const CudaDriver& driver = **opened;
  absl::StatusOr<CudaDevice> gpu = GpuOf(driver, *record);
  if (!gpu.ok()) return gpu.status();
  const CudaScope scope(driver, gpu->context);
  if (!scope.status().ok()) return scope.status();
  const LaunchPlan& plan = *record->launches;
  const size_t count = record->in_shapes.ranks.size();
  const auto arguments = absl::MakeConstSpan(call->arguments, call->count);
  auto inputs = Place(driver, plan, LaunchArgument::kInput, arguments.subspan(0, count));
  if (!inputs.ok()) return inputs.status();
  auto outputs = Place(driver, plan, LaunchArgument::kOutput, arguments.subspan(count));
  if (!outputs.ok()) return outputs.status();
  auto workspaces = PlaceWorkspaces(driver, plan, *values);
  if (!workspaces.ok()) return workspaces.status();
  const CudaImage image(std::string(call->image, call->image_size), plan.Functions());
  status =
      LaunchAll(driver, *gpu, plan, image,
                {AddressesOf(*inputs), AddressesOf(*outputs), AddressesOf(*workspaces), *values},
                kDefaultStream);
  for (size_t i = 0; status.ok() && i < outputs->size(); ++i) {
    status = (*outputs)[i]->Read(call->arguments[count + i].data);
  }
  return status;
}

}  // namespace
}  // namespace composite

extern "C" int composite_call_gpu_kernel(const composite_gpu_call* call, composite_buffer* error) {
  return composite::Reply(error, [&] { return composite::CallOnGpu(call); });
}
