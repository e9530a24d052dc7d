// What stands for NVIDIA's NVRTC: the functions of it that the compiler calls. "Machine code" is a
// library that g++ makes of a CUDA source over ../shim/threads.h, for the driver of ../device.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace {

constexpr int kFailed = 6;  // NVRTC_ERROR_COMPILATION

struct Program {
  std::string source, code, log;
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string WithLaunches(const std::string& source) {
  static const std::regex kernel(R"(__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\()");
  std::set<std::string> names;  // each is declared and defined
  for (std::sregex_iterator one(source.begin(), source.end(), kernel), end; one != end; ++one) {
    names.insert(one->str(1));
  }
  std::string text = "#include \"module.h\"\n" + source;
  for (const std::string& name : names) text += "COMPOSITE_MODULE_FUNCTION(" + name + ")\n";
  return text;
}

int Compile(Program* program) {
  char folder[] = "/tmp/test_nvrtc_XXXXXX";
  if (mkdtemp(folder) == nullptr) return kFailed;
  const std::string base = std::string(folder) + "/module";
  std::ofstream(base + ".cc") << WithLaunches(program->source);
  const std::string command =
      "g++ " TEST_FLAGS " -shared -o " + base + ".so " + base + ".cc 2> " + base + ".log";
  const int status = system(command.c_str());
  program->code = ReadAll(base + ".so");
  program->log = ReadAll(base + ".log");
  for (const char* suffix : {".cc", ".so", ".log"}) unlink((base + suffix).c_str());
  rmdir(folder);
  return status == 0 ? 0 : kFailed;
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int error) { return error == kFailed ? "refused" : "wrong call"; }

int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char**,
                       const char**) {
  *program = new Program{source, "", ""};
  return 0;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}

int nvrtcCompileProgram(Program* program, int, const char**) { return Compile(program); }

int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size();
  return 0;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  program->log.copy(log, program->log.size());
  return 0;
}

// As a text, which the driver takes back.
std::string Ptx(const Program& program) {
  std::string text = "//PTX ";
  for (unsigned char byte : program.code) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

int nvrtcGetPTXSize(Program* program, size_t* size) {
  *size = Ptx(*program).size();
  return 0;
}

int nvrtcGetPTX(Program* program, char* text) {
  const std::string ptx = Ptx(*program);
  ptx.copy(text, ptx.size());
  return 0;
}

int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->code.size();
  return 0;
}

int nvrtcGetCUBIN(Program* program, char* code) {
  program->code.copy(code, program->code.size());
  return 0;
}
}
