# Everything a contributor runs. Needs python3 (3.10 to 3.13), make and a C++17 compiler; cmake and
# ninja come from the package index into .venv. Each set-up step leaves a stamp and runs again only
# when what it read has changed.

# The interpreter that .venv is made with: python3 if it will do, else the newest that does.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
  $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null \
  && echo $$p && break; done)
CXX ?= g++
# One compile job takes about a gigabyte with TensorFlow's headers.
JOBS ?= $(shell nproc)

VENV := .venv
BIN := $(abspath $(VENV))/bin
PY := $(BIN)/python
CMAKE_DIR := build/cmake
CXX_SOURCES = $(shell find composite/runtime tests/runtime tests/gpu tests/exhaustive -name '*.cc' -o -name '*.[ch]')

# TensorFlow's start-up notes about CPU features are noise in every command here.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help tools build bazel demo test test-fast soak foreign exhaustive asan tsan aarch64 test-native browser lint format docs \
  bench gpu gpu-bundle minors pythons release wheel clean clean-venv

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# ---- set-up -------------------------------------------------------------------------------------

tools:
	@test -n "$(PYTHON)" || { \
	  echo "No Python 3.10 to 3.13 found. Install one:  sudo apt-get install python3 python3-venv"; \
	  echo "or name one:  make PYTHON=/path/to/python3 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments:  sudo apt-get install python3-venv"; exit 1; }
	@command -v $(firstword $(CXX)) >/dev/null || { \
	  echo "The C++ compiler '$(CXX)' is missing:  sudo apt-get install g++"; exit 1; }

$(VENV)/pyvenv.cfg: | tools
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed.stamp: requirements.lock requirements-serving.lock $(VENV)/pyvenv.cfg
	@echo "Installing the packages of requirements.lock into $(VENV)"
	$(PY) -m pip install --disable-pip-version-check -r requirements.lock
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps -r requirements-serving.lock
	touch $@

$(VENV)/editable.stamp: pyproject.toml $(VENV)/installed.stamp
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	touch $@

$(CMAKE_DIR)/build.ninja: CMakeLists.txt composite/runtime/CMakeLists.txt $(VENV)/installed.stamp | tools
	PATH="$(BIN):$$PATH" cmake -S . -B $(CMAKE_DIR) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_CXX_COMPILER="$(CXX)" -DPython_EXECUTABLE=$(PY) -DCOMPOSITE_BUILD_TESTS=ON
	touch $@

# ninja decides what is current; asking it costs a few milliseconds. It prints units done, units in all,
# and the time left.
NINJA := NINJA_STATUS="[%f/%t, %W left] " $(BIN)/ninja -C $(CMAKE_DIR) -j $(JOBS)
build: $(CMAKE_DIR)/build.ninja $(VENV)/editable.stamp  ## set everything up and compile the runtime
	@$(NINJA) composite_runtime composite_standalone

# Debian's Bazel, for tests/bazel. Whoever may install packages gets it, and then its tests must
# run; for others they are skipped.
BAZEL_PACKAGES := bazel-bootstrap bazel-rules-java bazel-rules-proto
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo -n)
bazel:  ## install Debian's Bazel 4.2.3, if it is missing and this user may
	@test -d /usr/share/bazel/rules/java && command -v bazel >/dev/null || { \
	  if command -v apt-get >/dev/null && $(AS_ROOT) true 2>/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; \
	    $(AS_ROOT) apt-get install -qq --no-install-recommends $(BAZEL_PACKAGES) >/dev/null || { \
	      $(AS_ROOT) apt-get update -qq && \
	      $(AS_ROOT) apt-get install -qq --no-install-recommends $(BAZEL_PACKAGES) >/dev/null; }; \
	  else \
	    echo "Bazel is missing and this user cannot install it; its tests are skipped. To run them:"; \
	    echo "  sudo apt-get install --no-install-recommends $(BAZEL_PACKAGES)"; \
	  fi; }

# Beam requires a protobuf below 7: its environment has that before what .venv has.
BEAM := .venv-beam
SITE := import sysconfig; print(sysconfig.get_path('purelib'))
$(BEAM)/installed.stamp: examples/batch_inference/requirements.txt $(VENV)/installed.stamp
	$(PY) -m venv $(BEAM)
	$(BEAM)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps -r $< || \
	  echo "Beam is left out: to try again, remove $(BEAM)"
	echo "import site; site.addsitedir('$$($(PY) -c "$(SITE)")')" > \
	  $$($(BEAM)/bin/python -c "$(SITE)")/zz_composite.pth
	touch $@

# NNSmith takes TensorFlow and NumPy from .venv. It tries once which dtypes its operators take there.
NNSMITH := .venv-nnsmith
NNSMITH_FILES := tests/foreign/nnsmith/requirements.txt tests/foreign/nnsmith/generate.py
$(NNSMITH)/installed.stamp: $(NNSMITH_FILES) $(VENV)/installed.stamp
	$(PY) -m venv $(NNSMITH)
	echo "import site; site.addsitedir('$$($(PY) -c "$(SITE)")')" > \
	  $$($(NNSMITH)/bin/python -c "$(SITE)")/zz_composite.pth
	rm -rf $(NNSMITH)/cache
	{ $(NNSMITH)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps -r $< && \
	  PYTHONHASHSEED=0 $(NNSMITH)/bin/python -m tests.foreign.nnsmith.generate 0 0; } || \
	  echo "NNSmith is left out: to try again, remove $(NNSMITH)"
	touch $@

# ---- what it is for -----------------------------------------------------------------------------

demo: build  ## train a classifier with a composite op, save it, serve it, show the paths taken
	$(PY) -m examples.digits.demo

test: export COMPOSITE_EXPECT_BAZEL = $(if $(CI)$(filter 0,$(shell id -u)),1)
test: build bazel browser $(BEAM)/installed.stamp test-native  ## all tests
	$(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not timed"
	$(PY) -m pytest -m timed $$(grep -rl 'mark\.timed' tests --include='test_*.py')

test-fast: build  ## the tests that are not marked slow, one or two minutes
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal -m "not slow and not timed"

MINUTES ?= 60
SEED ?= $(shell date +%s)
soak: build $(NNSMITH)/installed.stamp  ## random programs and a training that is disturbed, for an hour (MINUTES=, SEED=)
	$(PY) -m tests.soak $(MINUTES) $(SEED)

MODELS ?= 20000
foreign: build $(NNSMITH)/installed.stamp  ## Keras's own tests and NNSmith's models, with regions (ARGS=, MODELS=)
	$(PY) -m tests.foreign $(ARGS)
	$(PY) -m tests.foreign.nnsmith --count $(MODELS) --seed $(SEED)

exhaustive: build  ## elementary functions of kernels on all inputs (ARGS="tanh exp", ARGS=--rest)
	$(PY) -m tests.exhaustive $(ARGS)

# TensorFlow itself is not instrumented, so containers that it fills look odd from here. Exceptions
# of modules that are loaded later need the C++ library to be there when the sanitizer starts.
ASAN_DIR := build/asan
asan: $(VENV)/installed.stamp $(VENV)/editable.stamp  ## damaged programs, under AddressSanitizer
	PATH="$(BIN):$$PATH" cmake -S composite/runtime -B $(ASAN_DIR) -G Ninja \
	  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$(CXX)" -DPython_EXECUTABLE=$(PY) \
	  -DCOMPOSITE_SANITIZE=address
	$(BIN)/ninja -C $(ASAN_DIR) -j $(JOBS) --quiet
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0:detect_odr_violation=0 \
	  COMPOSITE_TEST_RUNTIME=$(ASAN_DIR) COMPOSITE_FUZZ_ROUNDS=$(or $(ROUNDS),1000) \
	  $(PY) -m pytest -q -p no:faulthandler \
	  tests/runtime/program/test_loader_fuzz.py tests/runtime/expand/test_expand.py \
	  tests/runtime/expand/test_expand_errors.py

# TensorFlow is not instrumented: what its queues hand from one thread to another would look like a
# race. So the harness drives what TensorFlow does: the launches and the host of kernels, which know
# nothing of TensorFlow, and kernels that TVM made, on a pool of its own.
TSAN_DIR := build/tsan
tsan: build  ## loops and kernels, many at once on few threads, under ThreadSanitizer
	$(PY) -m tests.runtime.harness.kernels $(TSAN_DIR)/kernels
	PATH="$(BIN):$$PATH" cmake -S tests/runtime -B $(TSAN_DIR) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_CXX_COMPILER="$(CXX)" -DPython_EXECUTABLE=$(PY) \
	  -DCOMPOSITE_TEST_KERNELS=$(abspath $(TSAN_DIR))/kernels
	$(BIN)/ninja -C $(TSAN_DIR) -j $(JOBS) --quiet
	$(BIN)/ctest --test-dir $(TSAN_DIR) --output-on-failure --no-tests=error -R "_tsan|kernels_test"
	$(PY) -m pytest -q tests/runtime/launch/test_teams.py

# Kernels for 64-bit ARM, and what calls them there. Whoever may install packages gets what it needs.
ARM_DIR := build/aarch64
ARM_PACKAGES := g++-aarch64-linux-gnu qemu-user
aarch64: build  ## kernels for 64-bit ARM and what calls them, run under QEMU
	@command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-g++ >/dev/null || { \
	  command -v apt-get >/dev/null && $(AS_ROOT) apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  $(AS_ROOT) apt-get install -qq --no-install-recommends $(ARM_PACKAGES) >/dev/null; } || { \
	  echo "The cross compiler or QEMU is missing:  sudo apt-get install $(ARM_PACKAGES)"; exit 1; }
	$(PY) -m tests.runtime.harness.kernels $(ARM_DIR)/kernels aarch64
	PATH="$(BIN):$$PATH" cmake -S tests/runtime -B $(ARM_DIR) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
	  "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu" \
	  -DCOMPOSITE_TEST_KERNELS=$(abspath $(ARM_DIR))/kernels
	$(BIN)/ninja -C $(ARM_DIR) -j $(JOBS) --quiet fixed_team_test tvm_abi_test kernels_test
	$(BIN)/ctest --test-dir $(ARM_DIR) --output-on-failure --no-tests=error \
	  -R '^(fixed_team|tvm_abi|kernels)_test$$'
	$(PY) -m pytest -q tests/composite/kernels/test_emulated.py

# The page of `composite show --html` is tested in Chromium. Who may install it, gets it; for others
# these tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
	  echo "Chromium could not be installed: the tests that need it are skipped"

test-native: build
	@$(NINJA)
	@$(BIN)/ctest --test-dir $(CMAKE_DIR) --output-on-failure --no-tests=error

lint: $(VENV)/editable.stamp  ## ruff, mypy --strict, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_SOURCES)

format: $(VENV)/installed.stamp  ## put every file into its format
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_SOURCES)

docs: build  ## the site of docs/, in build/site; a warning is an error
	$(PY) -m sphinx -q -E -W --keep-going -b html -d build/doctrees docs build/site

# What ours is measured beside has an environment of its own: its packages are none of ours.
PEERS := .venv-peers
PEERS_PY := $(abspath $(PEERS))/bin/python

$(PEERS)/pyvenv.cfg: | tools
	$(PYTHON) -m venv $(PEERS)

$(PEERS)/installed.stamp: benchmarks/peers.lock $(PEERS)/pyvenv.cfg
	for peer in "onnxruntime onnx" "openvino onnx" torch matplotlib; do \
	  $(PEERS_PY) -m pip install --disable-pip-version-check --quiet -c benchmarks/peers.lock numpy \
	    $$peer || echo "$$peer is left out: to try again, remove $(PEERS)"; \
	done
	touch $@

$(VENV)/hub.stamp: benchmarks/hub.lock $(VENV)/installed.stamp
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps -r $< || \
	  echo "keras-hub is left out: to try again, remove $@"
	touch $@

bench: build $(PEERS)/installed.stamp $(VENV)/hub.stamp  ## ours beside the peers, as ratios (ARGS=--help: what to run)
	$(PY) -m benchmarks $(ARGS)

# Without a GPU it says so. It needs no set-up where a bundle was copied to build/gpu: then any Python
# with NumPy runs it, such as the one that has PyTorch (GPU_PY=python3).
GPU_PY ?= $(if $(wildcard $(PY)),$(PY),$(PYTHON))
gpu:  ## check kernels on this machine's GPU and time them, in docs/gpu-performance.md
	@$(GPU_PY) -m benchmarks.gpu $(ARGS)

gpu-bundle: build  ## make the kernels of `make gpu` in build/gpu, for a machine without TensorFlow
	$(PY) -m benchmarks.gpu bundle

# In the folder that `build` compiles in, where nothing is left to compile. auditwheel finds the oldest
# glibc that has the symbols of ours, and names it in the wheel's tag. TensorFlow's libraries are the
# user's, so that there is nothing to copy, and without a patcher no library can be changed.
wheel: build  ## a manylinux wheel for the installed TensorFlow minor, in dist/
	rm -rf build/wheel dist/tf_composite-*.whl
	PATH="$(BIN):$$PATH" $(PY) -m pip wheel --no-deps --no-build-isolation \
	  --config-settings build-dir=$(CMAKE_DIR) -w build/wheel .
	$(PY) -m auditwheel repair --patcher none --exclude 'libtensorflow_*' -w dist \
	  build/wheel/tf_composite-*.whl
	$(PY) -m twine check --strict dist/tf_composite-*.whl

# What a release publishes (RELEASING.md): the wheel, the packages that it runs with, and checksums.
release: wheel  ## the wheel with an SBOM and checksums, in dist/
	rm -rf build/release dist/SHA256SUMS dist/tf_composite-*.cdx.json
	$(PY) -m venv build/release/installed
	build/release/installed/bin/python -m pip install --disable-pip-version-check -q -c requirements.lock \
	  "tf-composite[compiler,cpu] @ file://$$(echo $(CURDIR)/dist/tf_composite-*.whl)"
	$(PY) -m venv build/release/sbom
	build/release/sbom/bin/python -m pip install --disable-pip-version-check -q cyclonedx-bom==7.5.0
	build/release/sbom/bin/cyclonedx-py environment build/release/installed/bin/python \
	  --pyproject pyproject.toml --output-reproducible \
	  -o "$$(echo dist/tf_composite-*.whl | sed 's/-py3.*/.cdx.json/')"
	cd dist && sha256sum tf_composite-* > SHA256SUMS

# The runtime is compiled once: nothing of it is of a Python's ABI, and the wheel's tag says py3.
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
TESTS_OF_PYTHONS := tests/composite/ops/test_call.py tests/composite/saving/test_saving.py
pythons: wheel  ## the wheel and some tests under each Python that is installed (PYTHONS=: which)
	@for python in $(PYTHONS); do \
	  version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || { \
	    echo "$$python cannot be run: left out"; continue; }; \
	  venv=$(abspath build)/pythons/$$version; \
	  { test -x $$venv/bin/python || $$python -m venv $$venv; } && \
	  $$venv/bin/python -m pip install --disable-pip-version-check -q -r requirements.lock && \
	  $$venv/bin/python -m pip install --disable-pip-version-check -q --no-deps --force-reinstall \
	    dist/tf_composite-*.whl && \
	  (cd $$venv && bin/composite build --kinds 1 $(CURDIR)/examples/mirror_pad/ops.py -o library) && \
	  PATH="$$venv/bin:$$PATH" $$venv/bin/python -m pytest -q $(TESTS_OF_PYTHONS) || exit 1; \
	done

# Other versions of TensorFlow that the sources are for.
MINORS ?= 2.22.0rc0
minors: $(VENV)/pyvenv.cfg  ## build and test with other TensorFlows (MINORS=; ARGS="tests": all tests)
	@failed=; for version in $(MINORS); do $(PY) -m tests.minors $$version $(ARGS) || failed=1; done; test -z "$$failed"

clean:  ## remove what was built, keep .venv*
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f composite/runtime/*.so composite/runtime/build_info.json
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +

clean-venv: clean  ## remove .venv and the other environments too
	rm -rf $(VENV) $(VENV)-*
