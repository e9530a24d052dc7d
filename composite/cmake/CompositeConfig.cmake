# find_package(Composite): a library of ops as a target of a CMake project.
#
#   composite_add_op_library(<target>
#     SOURCE <file.py>             the ops, under @Composite
#     [NAME <identifier>]          of the library; by default the target's
#     [SIGNATURES <file>]          calls to compile kernels for, as JSON or a record
#     [TARGETS <level>...]         CPU levels, x86-64-v3; by default this machine's highest
#     [KINDS <n>]                  for each op without stated calls, at most n kinds of calls
#     [DEPENDS <file>...]          data that the source reads when it is imported
#     [DESTINATION <folder>])      where `install` puts the library, if it does
#
# The library is the folder <name> of the current build folder. What `composite build` has no
# option for is not here either: `composite build --help` says more.
#
# Found by scikit-build-core in whatever environment tf-composite is installed in; elsewhere with
# -DComposite_DIR="$(composite --cmake-dir)". Composite_RUNTIME is libcomposite_runtime.so.
include(CMakeFindDependencyMacro)
find_dependency(Python 3.10 COMPONENTS Interpreter)

set(Composite_RUNTIME "${CMAKE_CURRENT_LIST_DIR}/../runtime/libcomposite_runtime.so")
cmake_path(NORMAL_PATH Composite_RUNTIME)

function(composite_add_op_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;NAME;SIGNATURES;KINDS;DESTINATION"
    "TARGETS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_UNPARSED_ARGUMENTS " " unknown)
    list(JOIN arg_KEYWORDS_MISSING_VALUES " " empty)
    message(FATAL_ERROR
      "composite_add_op_library(${target}): not understood: ${unknown}${empty}")
  endif()
  if(NOT arg_SOURCE)
    message(FATAL_ERROR "composite_add_op_library(${target}): SOURCE is missing, the Python file")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "${target}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}")
  # Not a file of the library: ninja removes what an interrupted command was to make.
  set(stamp "${folder}.stamp")
  cmake_path(ABSOLUTE_PATH arg_SOURCE)
  set(depends "${arg_SOURCE}" "${Composite_RUNTIME}")
  set(options --name "${arg_NAME}" --depfile "${stamp}.d")
  if(arg_SIGNATURES)
    cmake_path(ABSOLUTE_PATH arg_SIGNATURES)
    list(APPEND depends "${arg_SIGNATURES}")
    list(APPEND options --signatures "${arg_SIGNATURES}")
  endif()
  if(DEFINED arg_KINDS)
    list(APPEND options --kinds "${arg_KINDS}")
  endif()
  foreach(level IN LISTS arg_TARGETS)
    list(APPEND options --target "${level}")
  endforeach()
  foreach(file IN LISTS arg_DEPENDS)
    cmake_path(ABSOLUTE_PATH file)
    list(APPEND depends "${file}")
  endforeach()
  if(arg_DEPENDS)
    list(APPEND options --force)  # composite build does not know of them
  endif()
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND "${Python_EXECUTABLE}" -m composite build "${arg_SOURCE}" --out "${folder}" ${options}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${depends}
    DEPFILE "${stamp}.d"
    COMMENT "Building the op library ${arg_NAME}"
    # One at a time, since kernels are measured; and it shows how far it is.
    USES_TERMINAL
    VERBATIM)
  add_custom_target("${target}" ALL DEPENDS "${stamp}")
  if(arg_DESTINATION)
    # As files, which nobody strips: the manifest has their hashes.
    install(DIRECTORY "${folder}/" DESTINATION "${arg_DESTINATION}")
  endif()
endfunction()
