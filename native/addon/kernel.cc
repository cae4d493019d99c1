#include "addon/kernel.h"

#include <linux/bpf.h>

#include <future>
#include <string>

#include "addon/errors.h"
#include "addon/fields.h"
#include "io/bpf.h"
#include "io/kernel_socket.h"
#include "io/network_namespace.h"

namespace weir {
namespace {

// What `open` returns. On a thread of its own: it may enter another network namespace.
template <class Open>
Napi::Value descriptor(const Napi::CallbackInfo& info, Open open) {
  return translated(info.Env(),
                    [&]() -> Napi::Value { return Napi::Number::New(info.Env(), std::async(std::launch::async, open).get()); });
}

std::string text_or_empty(const Napi::Value& value) { return value.IsString() ? value.As<Napi::String>().Utf8Value() : ""; }

Napi::Value open_socket_js(const Napi::CallbackInfo& info) {
  const int domain = info[0].ToNumber().Int32Value();
  const int type = info[1].ToNumber().Int32Value();
  const int protocol = info[2].ToNumber().Int32Value();
  const std::string path = text_or_empty(info[3]);
  return descriptor(info, [&] { return open_socket(domain, type, protocol, path); });
}

Napi::Value hold_udp_port(const Napi::CallbackInfo& info) {
  const std::string address = info[0].ToString().Utf8Value();
  const auto port = static_cast<uint16_t>(info[1].ToNumber().Uint32Value());
  const std::string path = text_or_empty(info[2]);
  return descriptor(info, [&] { return open_udp_discard(address, port, path); });
}

Napi::Value ethtool(const Napi::CallbackInfo& info) {
  if (!info[2].IsTypedArray()) throw Napi::TypeError::New(info.Env(), "ethtool(socket, name, data): data must be a Uint8Array");
  Napi::Uint8Array data = info[2].As<Napi::Uint8Array>();
  const bool answered =
      ask_ethtool(info[0].ToNumber().Int32Value(), info[1].ToString().Utf8Value(), {data.Data(), data.ByteLength()});
  return Napi::Boolean::New(info.Env(), answered);
}

// Loaded and forgotten: a program that passes every frame.
Napi::Value try_xdp_program(const Napi::CallbackInfo& info) {
  return translated(info.Env(), [&]() -> Napi::Value {
    BpfCode code;
    code.set(BpfRegister::r0, XDP_PASS);
    code.leave();
    const Descriptor loaded(bpf_load_xdp(code.instructions(), 0, 0, "weir_probe"));
    return info.Env().Undefined();
  });
}

}  // namespace

void define_kernel(Napi::Env env, Napi::Object exports) {
  exports.Set("openSocket", Napi::Function::New(env, open_socket_js, "openSocket"));
  exports.Set("holdUdpPort", Napi::Function::New(env, hold_udp_port, "holdUdpPort"));
  exports.Set("ethtool", Napi::Function::New(env, ethtool, "ethtool"));
  exports.Set("tryXdpProgram", Napi::Function::New(env, try_xdp_program, "tryXdpProgram"));
}

}  // namespace weir
