#include "composite/runtime/kernels/shape_policy.h"

#include <map>
#include <set>
#include <utility>

namespace composite {
namespace {

// Where in the dims the values of inputs are.
std::set<size_t> PlacesOfValues(const Signature& call) {
  std::set<size_t> places;
  size_t next = 0;
  for (const int rank : call.ranks) {
    if (rank == Signature::kOfValue) places.insert(next);
    next += Signature::DimsOf(rank);
  }
  return places;
}

}  // namespace

Signature ShapePolicy::Learn(const Signature& call) {
  int layers = 0;
  for (Family& layer : layers_) {
    if (layer.first.ranks != call.ranks) continue;
    ++layers;
    if (!IsSameLayer(layer, call)) continue;
    Refine(call, &layer);
    return ClassOf(layer);
  }
  if (layers >= kMaxLayers) return LearnGeneral(call);
  layers_.push_back(Start(call));
  return ClassOf(layers_.back());
}

Signature ShapePolicy::LearnGeneral(const Signature& call) {
  for (Family& general : general_) {
    if (general.first.ranks != call.ranks) continue;
    Refine(call, &general);
    return ClassOf(general);
  }
  Family general = Start(call);
  for (const Family& layer : layers_) {
    if (layer.first.ranks == call.ranks) Refine(layer.first, &general);
  }
  general_.push_back(std::move(general));
  return ClassOf(general_.back());
}

ShapePolicy::Family ShapePolicy::Start(const Signature& call) {
  Family family;
  family.first = call;
  std::map<int64_t, int> blocks;
  for (int64_t dim : call.dims) {
    family.block_of.push_back(blocks.emplace(dim, static_cast<int>(blocks.size())).first->second);
  }
  family.varied.assign(blocks.size(), false);
  return family;
}

std::vector<size_t> ShapePolicy::Outside(const Family& family, const Signature& call) {
  std::map<int, int64_t> values;  // of the blocks that vary, in this call
  std::vector<size_t> outside;
  for (size_t i = 0; i < call.dims.size(); ++i) {
    const int block = family.block_of[i];
    const int64_t wanted = family.varied[block] ? values.emplace(block, call.dims[i]).first->second
                                                : family.first.dims[i];
    if (call.dims[i] != wanted) outside.push_back(i);
  }
  return outside;
}

bool ShapePolicy::IsSameLayer(const Family& family, const Signature& call) {
  if (call.ranks.empty()) return true;
  const std::vector<size_t> outside = Outside(family, call);
  // Dims of one block and one value are the same thing, wherever they stand: one of them must be a
  // dim of the first input, and not its last (its only one, if it has one).
  // So is a value of an input.
  std::set<size_t> free = PlacesOfValues(call);
  const size_t first = call.ranks[0] > 1 ? call.ranks[0] - 1 : Signature::DimsOf(call.ranks[0]);
  for (size_t i = 0; i < first; ++i) free.insert(i);
  std::set<std::pair<int, int64_t>> things, free_things;
  for (size_t i : outside) {
    const auto thing = std::make_pair(family.block_of[i], call.dims[i]);
    things.insert(thing);
    if (free.count(i) != 0) free_things.insert(thing);
  }
  return things == free_things;
}

void ShapePolicy::Refine(const Signature& call, Family* family) {
  std::map<std::pair<int, int64_t>, int> blocks;
  std::vector<bool> varied;
  for (size_t i = 0; i < call.dims.size(); ++i) {
    const int old_block = family->block_of[i];
    auto [it, added] = blocks.emplace(std::make_pair(old_block, call.dims[i]), varied.size());
    if (added) {
      varied.push_back(family->varied[old_block] || call.dims[i] != family->first.dims[i]);
    }
    family->block_of[i] = it->second;
  }
  family->varied = std::move(varied);
}

Signature ShapePolicy::ClassOf(const Family& family) {
  Signature shapes = family.first;
  std::map<int, int64_t> symbols;
  for (size_t i = 0; i < shapes.dims.size(); ++i) {
    const int block = family.block_of[i];
    if (!family.varied[block]) continue;
    const int64_t next = -static_cast<int64_t>(symbols.size()) - 1;
    shapes.dims[i] = symbols.emplace(block, next).first->second;
  }
  return shapes;
}

}  // namespace composite
