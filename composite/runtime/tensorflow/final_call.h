// What the graph pass puts in a composite's place: a call of its expansion.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_FINAL_CALL_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_FINAL_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/kernels/machine.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The devices that a graph may run on.
struct Devices {
  const tensorflow::DeviceSet* all = nullptr;       // null: not known
  const tensorflow::Device* of_function = nullptr;  // of what is placed nowhere; null: the best one
};

// Where a node that asks for this device will run, before anything is placed: a device that is not
// there decides nothing, and the CPU is what there always is. What another process computes is none
// of our kernels'.
Device PlacedOn(const std::string& requested, const Devices& devices);

// Whether all devices there are, as far as is known, are CPUs of this process: so is then the one
// that a variable is on, which no node says.
bool AreHostCpus(const Devices& devices);

// The expansion of a node whose verdict is final; null to leave the node: it is no stamped
// composite, a kernel may serve it, a fact is missing, or something is wrong, which the node's own
// kernel reports better than a pass can. `facts` may be fewer than the node's inputs have if it is
// no composite. `device`: where the node will run.
std::shared_ptr<const Expansion> FinalExpansion(const tensorflow::NodeDef& def,
                                                std::vector<InputFact> facts, const Device& device);

// PartitionedCall (StatefulPartitionedCall if the expansion has state) with the name, device,
// inputs and underscored attributes of `def`.
tensorflow::NodeDef CallNode(const tensorflow::NodeDef& def, const Expansion& expansion);

// A fact from what a producing node says of its output: the value of a Const, the attribute
// `_output_shapes`. `constant` keeps the value alive.
InputFact FactFromProducer(const std::string& op, tensorflow::AttrSlice attrs, int output,
                           tensorflow::DataType dtype,
                           std::vector<std::unique_ptr<tensorflow::Tensor>>* constants);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_FINAL_CALL_H_
