"""Which test holds a source that has no test file of its own name.

A source `<folder>/<name>` is held by `tests/<folder>/test_<name>.py`, where that is a file. Sources
whose behaviour shows only together have a line here: a test file, and the sources that it holds. A
name without a folder is in the folder that the test mirrors.

tests/test_layers.py reads this list: each source has its own file or one line, and each line is
needed.
"""

from __future__ import annotations

HELD_BY: dict[str, str] = {
    "tests/composite/tf_op/test_tvm_device.py": "composite/runtime/foreign/tvm_device",
    "tests/compiler/tfr/test_opt.py": "composite/cli/opt.py",
    "tests/composite/saving/test_info.py": "composite/cli/info.py",
    "tests/composite/measuring/test_measure.py": "drawing.py",
    "tests/composite/kernels/test_shipping.py": "composite/cli/cache.py",
    "tests/composite/kernels/test_refusals.py": "targets.py",
    # Text in bodies.
    "tests/compiler/frontend/test_strings.py": (
        "messages.py composite/runtime/emit/texts composite/runtime/value/format"
        " composite/runtime/value/text_of"
    ),
    # What users call.
    "tests/composite/cli/test_main.py": "failures.py composite/__main__.py composite/__init__.py",
    "tests/composite/cli/test_calls.py": "bench.py check.py explain.py show.py",
    "tests/composite/ops/test_call.py": "compiled_call.py composite/counters.py",
    "tests/composite/kernels/test_numerics.py": "composite/explanation.py",
    "tests/composite/progress/test_activity.py": "event.py making.py",
    # What runs an op.
    "tests/composite/binding/test_native.py": "log.py tensorflow_version.py",
    "tests/composite/binding/test_typed_record.py": (
        "call_request.py fields.py kernel_record.py kernel_request.py"
    ),
    "tests/runtime/stacks/test_stack_updates.py": "picks stack",
    "tests/composite/ops/test_tensor_conditions.py": "composite/runtime/emit/one_of",
    "tests/composite/ops/test_keras_tensors.py": "keras_operation.py",
    "tests/composite/ops/test_semantics.py": "op.py",
    "tests/composite/autodiff/test_gradient.py": "backward.py families.py",
    "tests/composite/autodiff/test_residuals.py": "gradient_graph.py graph_cut.py",
    "tests/composite/vectorize/test_batching.py": "elementwise.py",
    "tests/composite/standalone/test_library.py": (
        "arrays.py native.py composite/aot/opening.py"
        " composite/aot/standalone_tables.py compiler/emit/standalone.py"
        " composite/runtime/standalone/failure"
        " composite/runtime/standalone/function composite/runtime/standalone/library"
        " composite/runtime/base/python_abi composite/runtime/standalone/python_array"
        " composite/runtime/standalone/python_calls composite/runtime/standalone/table"
        " composite/runtime/standalone/worker_pool"
    ),
    "tests/composite/saving/test_tflite_custom.py": (
        "composite/runtime/standalone/tflite_abi composite/runtime/standalone/tflite_delegate"
    ),
    "tests/composite/editing/test_models.py": "finding.py match.py places.py scope.py splicing.py",
    "tests/composite/recognition/test_models.py": (
        "attributes.py cuts.py differences.py finding.py recognizing.py report.py values.py"
        " composite/cli/recognize.py"
    ),
    "tests/composite/recognition/test_spellings.py": ("expansions.py search.py vocabulary.py"),
    "tests/composite/recognition/test_rules.py": (
        "algebra.py contraction.py layouts.py moving.py reading.py"
    ),
    "tests/composite/editing/test_functions.py": (
        "editing.py loaded_function.py matcher.py pattern.py replacement.py report.py traced.py"
        " composite/binding/printed.py"
    ),
    "tests/composite/profiling/test_counting.py": (
        "statistics.py composite/runtime/run/node_trace"
    ),
    "tests/composite/kernels/test_given.py": "composite/aot/own_kernels.py",
    "tests/examples/test_without_tensorflow.py": "composite/runtime/standalone/c_api",
    "tests/composite/tf_op/test_function.py": (
        "__init__.py composite/runtime/foreign/dlpack composite/runtime/foreign/function"
        " composite/runtime/foreign/op composite/runtime/foreign/call_op"
        " composite/runtime/foreign/shape_rules"
    ),
    "tests/composite/tf_op/test_xla.py": (
        "composite/runtime/foreign/xla_op composite/runtime/foreign/xla_call"
    ),
    "tests/composite/tf_op/test_module.py": (
        "composite/runtime/foreign/elf_image composite/runtime/foreign/library"
        " composite/runtime/api/foreign_c_api"
    ),
    "tests/composite/tf_op/test_live.py": "composite/runtime/foreign/tvm_ffi",
    "tests/composite/saving/test_saving.py": (
        "contents.py model_loading.py saved_model.py composite/cli/export.py"
        " composite/cli/needed.py"
    ),
    "tests/composite/saving/test_regained.py": "composite/runtime/portable/portable_calls",
    "tests/composite/diverging/test_search.py": (
        "deviation.py kernel_cuts.py library_expansion.py report.py subject.py values.py"
        " versions.py composite/cli/diverge.py"
    ),
    "tests/composite/quant/test_integers.py": "__init__.py",
    "tests/composite/acceleration/test_accelerate.py": (
        "comparing.py graph.py recognized.py report.py"
    ),
    "tests/composite/acceleration/test_bisecting.py": "composite/cli/bisect.py",
    "tests/composite/acceleration/test_replaying.py": (
        "composite/cli/replay.py composite/runtime/run/region_dump"
    ),
    "tests/composite/saving/test_region_kernels.py": ("composite/runtime/api/model_kernels"),
    "tests/composite/acceleration/test_model_folder.py": (
        "signatures.py composite/cli/accelerate.py composite/cli/folders.py "
        "composite/cli/reports.py composite/cli/signature_calls.py composite/trials/drawing.py"
    ),
    "tests/composite/hybrid/test_compiling.py": "__init__.py report.py subgraphs.py",
    "tests/composite/hybrid/test_calls.py": (
        "opened.py packing.py composite/runtime/hybrid/python_calls"
    ),
    "tests/composite/hybrid/test_stages.py": "graph.py",
    "tests/composite/hybrid/test_values.py": "freezing.py",
    # What makes kernels.
    "tests/composite/compiler_process/test_client.py": "process.py server.py service.py",
    "tests/compiler/tvm/strategy/cuda/test_gather.py": "compiler/tvm/passes/gathers_of_zeros.py",
    "tests/composite/reference/test_over_ring.py": (
        "ring_elementwise.py ring_sums.py ring_windows.py ring_words.py"
    ),
    "tests/compiler/tvm/algebra/test_kernel.py": (
        "expressions.py memory.py traced.py compiler/tvm/math/by_name.py"
        " compiler/tvm/tir/stand_ins.py"
    ),
    "tests/compiler/tvm/algebra/test_program.py": (
        "composite/runtime/words/arithmetic composite/runtime/words/arithmetic_avx2"
        " composite/runtime/words/lanes composite/runtime/words/memory"
        " composite/runtime/words/products composite/runtime/words/factors"
        " composite/runtime/words/program composite/runtime/words/run"
        " composite/runtime/words/running"
    ),
    "tests/composite/jit/test_worker.py": (
        "composite/kernels/expansions.py composite/kernels/produce.py"
    ),
    "tests/composite/tuning/test_tune.py": (
        "calls.py local.py session.py space.py composite/kernels/chosen.py"
    ),
    "tests/composite/tuning/test_remote.py": "compiler/tvm/remote.py",
    "tests/composite/aot/test_library.py": "building.py manifest.py writing.py",
    "tests/composite/aot/test_prebuild.py": "stated_calls.py",
    "tests/composite/cli/test_build.py": "composite/aot/build_options.py composite/aot/inputs.py",
    "tests/composite/checking/test_check.py": (
        "__init__.py batching.py drawing.py gradients.py oracle.py report.py run.py skipped.py"
        " ways.py"
    ),
    "tests/composite/checking/test_wrong.py": "kernels.py",
    "tests/composite/checking/test_samples.py": "sample.py shape_search.py templates.py",
    "tests/composite/linting/test_lint.py": (
        "__init__.py calls.py cautions.py refusals.py report.py"
    ),
    "tests/composite/linting/test_remedies.py": "page.py",
    # The compiler.
    "tests/compiler/frontend/test_python_calls.py": (
        "kinds.py compiler/frontend/analysis/uses.py composite/runtime/emit/numbers"
        " composite/runtime/value/fold_number"
    ),
    "tests/compiler/emit/test_texts.py": (
        "docs.py library.py literals.py registration.py stubs.py timings.py wrapper.py"
    ),
    "tests/compiler/errors/test_catalogue.py": (
        "__init__.py calls.py declarations.py expressions.py mistake.py names.py page.py sources.py"
        " statements.py"
    ),
    "tests/compiler/op_traits/test_table.py": (
        "__init__.py control.py movement.py pointwise.py randoms.py reductions.py"
    ),
    "tests/compiler/op_traits/test_cpp_table.py": "composite/runtime/base/op_traits",
    "tests/compiler/frontend/test_translate.py": (
        "__init__.py arguments.py attributes.py bindings.py body.py calls.py expressions.py"
        " operators.py statements.py subscripts.py"
    ),
    "tests/compiler/frontend/test_constructs.py": (
        "comprehensions.py specials.py analysis/flow.py"
    ),
    "tests/compiler/frontend/test_meaning.py": (
        "branches.py continuation.py exits.py trips.py analysis/liveness.py"
    ),
    "tests/compiler/frontend/test_errors.py": "analysis/paths.py analysis/scopes.py",
    "tests/compiler/frontend/test_inline.py": "callables.py",
    "tests/compiler/library/test_library.py": (
        "__init__.py names.py page.py arithmetic.py assertions.py comparison.py complexes.py"
        " creation.py dtypes.py images.py indexing.py layout.py linear.py randoms.py reduction.py"
        " scans.py segments.py shaping.py sorting.py special.py spectra.py text.py"
    ),
    "tests/compiler/library/nn/test_nn.py": (
        "activation.py convolution.py normalization.py pooling.py windows.py"
    ),
    "tests/compiler/test_speed.py": "attr_values.py",
    "tests/composite/autodiff/test_loop_residuals.py": "compiler/loop_body.py",
    "tests/composite/autodiff/test_places.py": "compiler/node_place.py",
    "tests/compiler/tfr/test_dialect.py": "bindings.py builder.py",
    "tests/compiler/tfr/test_passes.py": "__init__.py canonicalize.py state.py",
    "tests/compiler/tfr/test_serialize.py": "captures.py digest.py places.py",
    "tests/compiler/tfr/test_fork.py": "cursor.py loop.py",
    "tests/compiler/tfr/test_recipe.py": "text.py",
    # From a TensorFlow function to machine code.
    "tests/compiler/tvm/test_build.py": "__init__.py errors.py link.py show.py codegen/argument.py",
    "tests/compiler/tvm/proof/test_proof.py": (
        "__init__.py contents.py expressions.py phases.py races.py result.py walk.py"
    ),
    "tests/compiler/tvm/proof/test_integers.py": "atoms.py bound.py facts.py polynomials.py",
    "tests/compiler/tvm/proof/test_owners.py": "divided.py",
    "tests/compiler/tvm/codegen/test_access.py": "indices.py space.py",
    "tests/compiler/tvm/lower/test_lower.py": (
        "activation.py arithmetic.py comparison.py contraction.py convolution.py data.py lists.py"
        " pooling.py static.py unary.py windows.py compiler/tvm/ir/window.py"
        " compiler/tvm/strategy/cpu/constant.py compiler/tvm/nodes/node.py"
    ),
    "tests/compiler/tvm/lower/test_lower_views.py": (
        "joining.py slicing.py compiler/tvm/ir/views.py compiler/tvm/codegen/view_access.py"
    ),
    "tests/compiler/tvm/lower/test_lower_gathering.py": (
        "gathering.py scattering.py compiler/tvm/strategy/cpu/scatter.py"
    ),
    "tests/compiler/tvm/lower/test_lower_reduction.py": "reduction.py",
    "tests/compiler/tvm/lower/test_lower_scanning.py": (
        "scanning.py compiler/tvm/strategy/cpu/scan.py"
    ),
    "tests/compiler/tvm/lower/test_lower_softmax.py": "softmax.py",
    "tests/compiler/tvm/machine/test_machine.py": (
        "compiler/tvm/machine/__init__.py gpu.py compiler/tvm/machine/levels.py"
    ),
    "tests/compiler/tvm/ir/test_walk.py": "anchors.py dtypes.py tensor.py",
    "tests/compiler/tvm/lower/test_randoms.py": "compiler/tvm/math/philox.py",
    "tests/compiler/tvm/math/test_elementary.py": (
        "exponential.py fit.py numeric.py trigonometry.py"
    ),
    "tests/compiler/tvm/read/test_loops.py": (
        "loop_builder.py loop_parts.py reader.py while_loop.py compiler/tvm/ir/lists.py"
        " compiler/tvm/ir/loop.py compiler/tvm/strategy/cpu/recurrence.py"
        " compiler/tvm/strategy/loop_trips.py"
        " compiler/tvm/strategy/cpu/product/cycles.py"
    ),
    "tests/compiler/tvm/passes/test_pipeline.py": "close.py hoist.py lift.py split_products.py",
    "tests/compiler/tvm/passes/test_rounding.py": "rewriting.py",
    "tests/compiler/tvm/plan/test_plan.py": "row_stages.py stage.py",
    "tests/compiler/tvm/strategy/test_context.py": (
        "__init__.py cost.py indexing.py tasks.py epilogue.py cpu/__init__.py"
    ),
    "tests/compiler/tvm/plan/test_row_chains.py": "row_block.py",
    "tests/compiler/tvm/strategy/cpu/elementwise/test_elementwise.py": (
        "compiler/tvm/strategy/merge.py"
    ),
    "tests/compiler/tvm/strategy/cpu/chain/test_row_chain.py": "joining.py",
    "tests/compiler/tvm/strategy/cpu/convolution/test_convolution.py": "conv_task.py strip.py",
    "tests/compiler/tvm/strategy/cpu/convolution/test_channelwise.py": "taps.py",
    "tests/compiler/tvm/strategy/cpu/product/test_gemm.py": (
        "contraction.py gemm_task.py pack.py product.py compiler/tvm/codegen/transpose.py"
        " compiler/tvm/strategy/cpu/elementwise/epilogue.py"
    ),
    "tests/compiler/tvm/strategy/cpu/product/test_matvec.py": "axpy.py dots.py",
    "tests/compiler/tvm/strategy/cpu/product/test_panels.py": "compiler/tvm/ir/constants.py",
    "tests/compiler/tvm/strategy/cpu/product/test_steps.py": "pack_rows.py",
    "tests/compiler/tvm/strategy/cpu/rows/test_rows.py": (
        "row_loops.py row_pieces.py compiler/tvm/math/division.py"
        " compiler/tvm/strategy/row_program.py compiler/tvm/strategy/row_tensors.py"
    ),
    "tests/compiler/tvm/strategy/cpu/rows/test_reduction.py": "accumulate.py",
    "tests/compiler/tvm/strategy/cuda/test_elementwise.py": "constant.py vectors.py",
    "tests/compiler/tvm/strategy/cuda/test_recurrence.py": (
        "held_group.py held_product.py held_fragments.py"
    ),
    "tests/compiler/tvm/strategy/cuda/test_rows.py": (
        "group.py compiler/tvm/codegen/device_block.py"
    ),
    "tests/compiler/tvm/strategy/cuda/test_attention.py": (
        "running_rows.py attention_shapes.py compiler/tvm/plan/running_softmax.py"
    ),
    "tests/compiler/tvm/strategy/cuda/test_tensor_product.py": (
        "staged_factor.py staged_pieces.py fragments.py staged_sums.py made_of_sums.py"
        " compiler/tvm/cuda/tensor_core.py"
    ),
    "tests/compiler/tvm/strategy/cuda/test_warp_group_product.py": (
        "swizzled_factor.py group_products.py group_launch.py compiler/tvm/cuda/warp_group.py"
    ),
    "tests/compiler/tvm/cuda/test_build.py": ("rules.py compiler/tvm/strategy/cuda/__init__.py"),
    # The runtime: a unit is x.h and x.cc.
    "tests/runtime/program/test_registry.py": (
        "node_attrs op_def_text op_version signature"
        " composite/runtime/tensorflow/registration composite/runtime/tensorflow/resolve_calls"
        " composite/runtime/tensorflow/op_kernel_registration composite/runtime/base/text"
        " composite/runtime/api/c_api_reply"
        " composite/runtime/api/program_c_api"
    ),
    "tests/runtime/program/test_function_versions.py": "function_digest",
    "tests/runtime/program/test_loader_fuzz.py": "parse_program program region_check",
    "tests/runtime/expand/test_expand.py": (
        "body_shapes carried_values evaluator evaluator_if evaluator_while expansion"
        " trip_count composite/runtime/api/request composite/runtime/base/authors_place"
        " composite/runtime/graph/graph_builder composite/runtime/graph/graph_builder_shapes"
        " composite/runtime/graph/list_shapes composite/runtime/graph/common_shape"
        " composite/runtime/emit/emitter composite/runtime/emit/emitter_bind"
        " composite/runtime/emit/emitter_values composite/runtime/emit/join"
        " composite/runtime/emit/condition composite/runtime/emit/inner_function"
        " composite/runtime/value/constant"
        " composite/runtime/value/value"
    ),
    "tests/runtime/expand/test_expand_errors.py": "composite/runtime/graph/not_yet",
    "tests/runtime/expand/test_expansion_cache.py": (
        "composite/runtime/base/fingerprint composite/runtime/graph/facts"
    ),
    "tests/runtime/expand/test_operators.py": (
        "composite/runtime/emit/builtins composite/runtime/emit/item"
        " composite/runtime/emit/operators composite/runtime/emit/subscript"
        " composite/runtime/value/fold composite/runtime/value/fold_array"
        " composite/runtime/value/fold_compare"
    ),
    "tests/runtime/harness/crew_test.cc": "processor",
    "tests/runtime/harness/launch_test.cc": (
        "launch_history launch_state launch_team pool processor_share"
    ),
    "tests/runtime/kernels/test_decide.py": (
        "decision_text dtypes node_groups options composite/runtime/api/explain"
    ),
    "tests/runtime/kernels/test_decision_table.py": "timings",
    "tests/runtime/kernels/test_kernel_library.py": (
        "kernel_install machine composite/runtime/base/cpu_level composite/runtime/base/sha256"
    ),
    "tests/runtime/kernels/test_kernel_families.py": "composite/runtime/request/request_budget",
    "tests/runtime/kernels/test_kernel_table.py": (
        "kernel_group kernel_record composite/runtime/api/kernel_c_api"
        " composite/runtime/base/dim_arithmetic"
        " composite/runtime/request/dim_expression composite/runtime/request/kernel_shapes"
    ),
    "tests/runtime/instantiate/test_expansion_runner.py": (
        "expansion_library instantiated_expansion"
    ),
    "tests/runtime/direct/test_kept_ops.py": (
        "composite/ops/kept.py composite/runtime/direct/own_kernel"
    ),
    "tests/runtime/direct/test_direct_graph.py": (
        "direct_call direct_function direct_ops step_container"
        " composite/runtime/instantiate/inline_run"
    ),
    "tests/composite/ops/test_resting_inputs.py": "composite/runtime/run/resting_inputs",
    "tests/runtime/python/test_arguments.py": "function_calls",
    "tests/runtime/python/test_eager_tensors.py": "functions op_calls prepared",
    "tests/composite/ops/test_direct.py": "composite/runtime/direct/direct_op",
    "tests/runtime/hybrid/test_model.py": (
        "calls description idle_machines module_parts part transfer "
        "composite/runtime/api/hybrid_c_api"
        " composite/runtime/foreign/tvm_module"
    ),
    "tests/runtime/hybrid/test_other_ops.py": "assets",
    "tests/runtime/run/test_op_kernel.py": "composite_node node_call",
    "tests/gpu/test_on_device.py": (
        "composite/runtime/run/device_op composite/runtime/run/gpu_call"
        " composite/runtime/run/host_tensors"
        " composite/runtime/run/gpu_device composite/runtime/api/gpu_c_api"
        " composite/runtime/cuda/driver composite/runtime/cuda/image composite/kernels/gpu.py"
        " composite/kernels/unchecked.py"
        " composite/kernels/given_gpu.py"
        " composite/runtime/instantiate/placement"
    ),
    "tests/runtime/instantiate/test_optimized_expansion.py": (
        "background hot_expansion input_facts instantiated_function"
    ),
    "tests/runtime/run/test_kernel_call.py": (
        "composite/runtime/base/stats kernel_host kernel_outputs"
    ),
    "tests/composite/ops/test_constants.py": (
        "composite/runtime/kernels/packing "
        "composite/runtime/run/kernel_view composite/runtime/run/packed_constants"
        " composite/runtime/tensorflow/constant_inputs"
    ),
    "tests/runtime/checking/test_graph_check.py": "broken_graph composite/runtime/api/test_c_api",
    "tests/runtime/regions/test_partition.py": "function_regions",
    "tests/runtime/regions/test_form_regions.py": "prepared_under region_counts",
    "tests/runtime/variables/test_updates.py": "read_op update_node update_op",
    "tests/composite/jit/test_variables.py": "composite/runtime/variables/contents",
    "tests/composite/binding/test_dlpack_exports.py": "composite/runtime/memory/exports",
    "tests/sharing/test_weights.py": (
        "composite/runtime/memory/inplace_ops composite/runtime/memory/idle_release"
        " composite/runtime/memory/tensor_identity composite/runtime/python/array_memory"
    ),
    "tests/runtime/tensorflow/test_graph_pass.py": "final_call function_rewrite node_rewrite",
    "tests/runtime/tensorflow/test_call_names.py": "stand_in",
    "tests/composite/ops/test_function_op.py": "composite/runtime/tensorflow/function_op",
    "tests/composite/autodiff/test_gradient_inputs.py": (
        "composite/runtime/tensorflow/saving_forward"
    ),
    "tests/composite/test_xla_waits.py": (
        "composite/runtime/xla/calls_ahead composite/runtime/xla/compilation"
    ),
    "tests/composite/test_xla_kernels.py": (
        "composite/runtime/xla/custom_call composite/runtime/xla/host"
        " composite/runtime/xla/kernel_call composite/runtime/xla/kernel_choice"
        " composite/runtime/xla/kernel_handler composite/runtime/xla/kernel_handles"
    ),
    "tests/composite/jit/test_xla_functions.py": (
        "composite/runtime/tensorflow/region_pass composite/runtime/xla/xla_region"
    ),
    "tests/composite/test_xla.py": (
        "composite/runtime/xla/xla_constants composite/runtime/tensorflow/xla_kernel"
    ),
    "tests/examples/test_serving.py": (
        "composite/runtime/api/library_c_api composite/runtime/api/library_folder"
    ),
}
