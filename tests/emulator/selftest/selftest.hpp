// Shorthands for programs written as the source pass would translate them.
#include "gridfuse_emulator.hpp"

#define LAUNCH(kernel_, ...) ::emu::Launch(__FILE__, __LINE__, __VA_ARGS__).of(kernel_)
#define SHARED(type, name) \
    static const ::emu::SharedKey emu_key_##name{}; \
    auto& name = ::emu::shared<type>(emu_key_##name)
#define DEVICE_VARIABLE(name) static const ::emu::RegisterGlobal emu_reg_##name{&name, sizeof name, #name, ::emu::Space::Device}

template <class T>
T* device_array(int n) {
    T* address = nullptr;
    cudaMalloc(&address, n * sizeof(T));
    cudaMemset(address, 0, n * sizeof(T));
    return address;
}
inline int fetch(const int* device) {
    int value = -1;
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}
