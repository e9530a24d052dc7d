#include "composite/runtime/kernels/kernel_table.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "composite/runtime/base/record_tables.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/request/call_record.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::NodeDef;

// How often a waiting call looks whether it was cancelled.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(50);

absl::Status NoWorker() {
  return absl::FailedPreconditionError(
      "no kernel covers this call, and nobody compiles: just-in-time compilation is off "
      "(COMPOSITE_JIT=0) or not running in this process");
}

absl::Status ClassStatus(const ShapeClass& shape_class) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no kernel for shapes ", ToString(shape_class.shapes), ": ",
      shape_class.reason.empty() ? "the compiler gave no reason" : shape_class.reason));
}

}  // namespace

KernelTable& KernelTable::Global() {
  static KernelTable* table = new KernelTable;  // nodes of other threads may outlive static objects
  return *table;
}

std::shared_ptr<KernelGroup> KernelTable::Group(const OpVersion& version, AttrSlice attrs,
                                                const AttrValue* constants,
                                                const KernelKind& kind) {
  NodeDef description = Describe(version, attrs, constants, kind);
  const std::string key = constants != nullptr ? constants->SerializeAsString() : "";
  std::vector<KernelFamily> dropped;
  absl::MutexLock lock(mu_);
  KernelFamily& family = families_.Get(version, description, &dropped);
  std::shared_ptr<KernelGroup>& group = family.groups[key];
  if (group != nullptr) return group;
  group = std::make_shared<KernelGroup>(std::move(description), family.budget);
  for (const auto& [name, kernel] : family.packing) {
    if (!group->HasConstants(kernel.record.packed)) continue;
    AddLocked(group.get(), kernel).IgnoreError();  // it was added to another group
  }
  AddPortableLocked(version, attrs, kind.device, group.get());
  return group;
}

KernelFamily& KernelTable::FamilyOf(const OpVersion& version, AttrSlice attrs,
                                    const KernelKind& kind) {
  std::vector<KernelFamily> dropped;  // none: it is there
  return families_.Get(version, Describe(version, attrs, nullptr, kind), &dropped);
}

void KernelTable::Enqueue(KernelGroup* group, const Signature& call) {
  // Without the lock, for nodes that keep to what they knew at their first call, and ask for ever.
  if (!group->NoteCall()) return;
  absl::MutexLock lock(mu_);
  EnqueueLocked(group, call, /*must=*/false).IgnoreError();  // the next call asks again
}

absl::Status KernelTable::EnqueueLocked(KernelGroup* group, const Signature& call, bool must) {
  if (!worker_running() || !JitAllowed()) return NoWorker();
  if (!HasRoom()) {
    return absl::ResourceExhaustedError("too many kernels are waiting to be compiled");
  }
  KernelSnapshot next = group->snapshot();
  Choice choice = Choose(next, call, must);
  if (choice.shape_class != nullptr) return absl::OkStatus();  // asked meanwhile
  Signature sized;
  if (!WithValues(call, next.sizes, &sized)) {
    return absl::FailedPreconditionError(
        "an input that kernels of this op take for a size is not above 0");
  }
  // The policy does not learn from an odd dim such as 0, which would be no use to any other call.
  Signature shapes = choice.ones.has_value()       ? *std::move(choice.ones)
                     : choice.unchecked != nullptr ? choice.unchecked->record.in_shapes
                     : sized.has_empty_input() || group->has_exact_classes()
                         ? sized
                         : group->policy_.Learn(sized);
  // The kernel of that class has bounds which this call is outside of.
  if (next.Class(shapes) != nullptr) shapes = sized;
  if (next.Class(shapes) != nullptr) {
    return absl::FailedPreconditionError("the kernel compiled for this call does not cover it");
  }
  if (!MakeRoom(&next)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("kernels for ", kMaxClasses, " other shapes of this op are being compiled"));
  }
  LastUse::Tick();
  next.classes.push_back({shapes, ShapeClass::kPending, ""});
  group->Publish(std::move(next));
  const std::string ticket = absl::StrCat("t", next_ticket_++);
  Request& request = tickets_[ticket];
  request.group = group->shared_from_this();
  request.shapes = shapes;
  request.call = call;
  request.must = must;
  request.unchecked = choice.unchecked;
  if (!must) group->budget_->NoteRequest();
  RecordCall(group->request_, shapes);
  Match(shapes, call, &request.hint);
  queue_.insert(must ? queue_.begin() : queue_.end(), ticket);
  Count(GlobalStats().requests);
  work_.Signal();
  return absl::OkStatus();
}

void KernelTable::Prioritize(KernelGroup* group, const Signature& shapes) {
  for (auto& [ticket, request] : tickets_) {
    if (request.group.get() != group || !(request.shapes == shapes) || request.must) continue;
    request.must = true;
    auto queued = std::find(queue_.begin(), queue_.end(), ticket);
    if (queued == queue_.end()) return;
    queue_.erase(queued);
    queue_.push_front(ticket);
    return;
  }
}

absl::Status KernelTable::Await(KernelGroup* group, const Signature& call,
                                const std::function<bool()>& cancelled) {
  absl::MutexLock lock(mu_);
  for (;;) {
    const Choice choice = Choose(group->snapshot(), call, /*must=*/true);
    if (choice.kernel != nullptr) return absl::OkStatus();
    if (choice.shape_class == nullptr) {
      absl::Status asked = EnqueueLocked(group, call, /*must=*/true);
      if (!asked.ok()) return asked;
      continue;
    }
    if (choice.shape_class->state != ShapeClass::kPending) return ClassStatus(*choice.shape_class);
    if (!worker_running()) return NoWorker();
    if (cancelled())
      return absl::CancelledError("the call was cancelled while its kernel compiled");
    Prioritize(group, choice.shape_class->shapes);
    changed_.WaitWithTimeout(&mu_, kCancelPoll);
  }
}

void KernelTable::AwaitVerdict(KernelGroup* group, const Signature& call, absl::Time end) {
  bool is_asked = false;
  absl::MutexLock lock(mu_);
  for (;;) {
    const Choice choice = Choose(group->snapshot(), call, /*must=*/false);
    if (choice.kernel != nullptr || choice.slower != nullptr) return;
    if (choice.shape_class == nullptr) {
      if (!std::exchange(is_asked, true) && !group->NoteCall()) return;
      if (!EnqueueLocked(group, call, /*must=*/false).ok()) return;
      continue;
    }
    if (choice.shape_class->state != ShapeClass::kPending || !worker_running()) return;
    Prioritize(group, choice.shape_class->shapes);
    if (changed_.WaitWithDeadline(&mu_, end)) return;
  }
}

void KernelTable::Ask(KernelGroup* group, const Signature& call, bool must) {
  absl::MutexLock lock(mu_);
  const Choice choice = Choose(group->snapshot(), call, must);
  if (choice.kernel != nullptr || (choice.slower != nullptr && !must)) return;
  if (choice.shape_class == nullptr) {
    if (!must && !group->NoteCall()) return;
    if (!EnqueueLocked(group, call, must).ok()) return;  // who waits asks again
  }
  const ShapeClass* asked = Choose(group->snapshot(), call, must).shape_class;
  if (asked != nullptr) Prioritize(group, asked->shapes);
}

std::vector<std::string> KernelTable::Abandoned() const {
  absl::flat_hash_map<const KernelGroup*, long> known;  // who holds a group that is no node
  for (const auto& [ticket, request] : tickets_) {
    ++known.try_emplace(request.group.get(), 1).first->second;  // 1: its family
  }
  std::vector<std::string> abandoned;
  for (const std::string& ticket : queue_) {
    const Request& request = tickets_.at(ticket);
    const bool is_held = request.group.use_count() > known.at(request.group.get());
    if (!request.must && !is_held) abandoned.push_back(ticket);
  }
  return abandoned;
}

void KernelTable::Withdraw(const Request& request) {
  KernelSnapshot next = request.group->snapshot();
  const auto is_pending = [&](const ShapeClass& known) {
    return known.state == ShapeClass::kPending && known.shapes == request.shapes;
  };
  next.classes.erase(std::remove_if(next.classes.begin(), next.classes.end(), is_pending),
                     next.classes.end());
  request.group->Publish(std::move(next));
}

bool KernelTable::HasRoom() {
  if (queue_.size() < kMaxQueue) return true;
  const std::vector<std::string> abandoned = Abandoned();
  if (abandoned.empty()) return false;
  const auto first = tickets_.find(abandoned[0]);
  queue_.erase(std::find(queue_.begin(), queue_.end(), first->first));
  Withdraw(first->second);
  tickets_.erase(first);
  changed_.SignalAll();
  return true;
}

std::string KernelTable::NextTicket() {
  const std::vector<std::string> abandoned = Abandoned();
  const absl::flat_hash_set<std::string> last(abandoned.begin(), abandoned.end());
  const auto last_served = [&](const std::string& ticket) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const Request& request = tickets_.at(ticket);
    const int64_t served = request.must ? -1 : request.group->budget_->last_served();
    return std::make_pair(last.contains(ticket), served);
  };
  const auto next = std::min_element(
      queue_.begin(), queue_.end(),
      [&](const std::string& a, const std::string& b) { return last_served(a) < last_served(b); });
  std::string ticket = *next;
  queue_.erase(next);
  tickets_.at(ticket).group->budget_->NoteServed(++served_);
  return ticket;
}

absl::optional<NodeDef> KernelTable::NextRequest(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(mu_);
  while (queue_.empty()) {
    if (!worker_running() || work_.WaitWithDeadline(&mu_, deadline)) break;
  }
  if (queue_.empty()) return absl::nullopt;
  const std::string ticket = NextTicket();
  const Request& request = tickets_.at(ticket);
  NodeDef message = request.group->request_;
  message.set_name(ticket);
  (*message.mutable_attr())[kInShapesField] = ToAttrValue(request.shapes);
  for (int input : InputsOfValues(request.shapes)) {
    (*message.mutable_attr())[kSizeInputsField].mutable_list()->add_i(input);
  }
  (*message.mutable_attr())[kMustField].set_b(request.must);
  if (request.unchecked != nullptr) {
    (*message.mutable_attr())[kUncheckedField].set_s(
        request.unchecked->unchecked->SerializeAsString());
    (*message.mutable_attr())[kImageField].set_s(request.unchecked->image->bytes());
  }
  AttrValue& hint = (*message.mutable_attr())[kHintField];
  hint.mutable_list();
  for (int64_t value : request.hint) hint.mutable_list()->add_i(value);
  return message;
}

bool KernelTable::MakeRoom(KernelSnapshot* snapshot) {
  std::vector<ShapeClass>& classes = snapshot->classes;
  if (classes.size() < kMaxClasses) return true;
  auto oldest = classes.end();
  for (auto it = classes.begin(); it != classes.end(); ++it) {
    if (it->state == ShapeClass::kPending) continue;
    if (oldest == classes.end() || it->used->at() < oldest->used->at()) oldest = it;
  }
  if (oldest == classes.end()) return false;
  auto& kernels = snapshot->kernels;
  kernels.erase(
      std::remove_if(kernels.begin(), kernels.end(),
                     [&](const InstalledKernel* kernel) { return kernel->used == oldest->used; }),
      kernels.end());
  classes.erase(oldest);
  Count(GlobalStats().evicted_classes);
  return true;
}

void KernelTable::SetState(KernelGroup* group, const Signature& shapes, ShapeClass::State state,
                           const std::string& reason) {
  KernelSnapshot next = group->snapshot();
  for (ShapeClass& shape_class : next.classes) {
    if (!(shape_class.shapes == shapes)) continue;
    shape_class.state = state;
    shape_class.reason = reason;
  }
  group->Publish(std::move(next));
}

bool KernelTable::AskForSizes(const Request& request, absl::Span<const int> sizes) {
  const auto& ranks = request.shapes.ranks;
  const bool others = std::any_of(sizes.begin(), sizes.end(), [&](int input) {
    return input >= 0 && input < static_cast<int>(ranks.size()) && ranks[input] == 0;
  });
  if (!others) return false;
  KernelSnapshot next = request.group->snapshot();
  next.sizes.insert(next.sizes.end(), sizes.begin(), sizes.end());
  next.classes.erase(std::remove_if(next.classes.begin(), next.classes.end(),
                                    [&](const ShapeClass& shape_class) {
                                      return shape_class.shapes == request.shapes;
                                    }),
                     next.classes.end());
  request.group->Publish(std::move(next));
  EnqueueLocked(request.group.get(), request.call, request.must).IgnoreError();  // so will a call
  return true;
}

absl::Status KernelTable::Finish(const std::string& ticket, const std::string& status,
                                 const std::string& reason, absl::Span<const int> sizes) {
  static const auto* const kStates =
      new std::map<std::string, ShapeClass::State>{{"kernel", ShapeClass::kKernel},
                                                   {"expansion", ShapeClass::kExpansion},
                                                   {"not_covered", ShapeClass::kNotCovered},
                                                   {"failed", ShapeClass::kFailed}};
  auto state = kStates->find(status);
  if (state == kStates->end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "status \"", status, "\" is not one of kernel, expansion, not_covered, failed"));
  }
  absl::MutexLock lock(mu_);
  auto open = tickets_.find(ticket);
  if (open == tickets_.end()) {
    return absl::NotFoundError(absl::StrCat("no open request has the ticket \"", ticket, "\""));
  }
  queue_.erase(std::remove(queue_.begin(), queue_.end(), ticket), queue_.end());
  const Request request = std::move(open->second);
  tickets_.erase(open);
  if (sizes.empty() || !AskForSizes(request, sizes)) {
    SetState(request.group.get(), request.shapes, state->second, reason);
  }
  if (status == "kernel" || status == "expansion") Count(GlobalStats().answered);
  changed_.SignalAll();
  return absl::OkStatus();
}

void KernelTable::SetWorker(bool running) {
  absl::MutexLock lock(mu_);
  worker_running_.store(running, std::memory_order_release);
  if (!running) {
    for (const auto& [ticket, request] : tickets_) Withdraw(request);
    tickets_.clear();
    queue_.clear();
  }
  work_.SignalAll();
  changed_.SignalAll();
}

int64_t KernelTable::Pending() const {
  absl::MutexLock lock(mu_);
  return static_cast<int64_t>(tickets_.size());
}

std::string KernelTable::WhyLater(const OpVersion& version, const KernelGroup& group) const {
  const int64_t to_come = group.calls_to_come();
  absl::MutexLock lock(mu_);
  if (to_come <= 1) {
    if (queue_.size() < kMaxQueue || !Abandoned().empty()) return "";
    return absl::StrCat("no kernel covers this call; ", queue_.size(),
                        " others are waiting to be compiled, and a later call asks for one");
  }
  const auto [attr, values] = families_.MostVaried(version);
  std::string text =
      absl::StrCat("no kernel covers this call; ", group.budget_->asked(),
                   " were asked for, for other calls of this ",
                   absl::StartsWith(version.digest, kRegionPrefix) ? "region" : "op",
                   ", and another is asked for after ", to_come, " calls with these attributes");
  if (attr.empty()) return text;
  return absl::StrCat(text, ". ", attr, " has had ", values,
                      " values: if it varies, declare it as ",
                      "an input of the op, so that one kernel serves them all");
}

}  // namespace composite
