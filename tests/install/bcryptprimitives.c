// Wine before 9 lacks this library of Windows, from which Rust's standard library takes its random numbers.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG bytes);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T bytes) {
    return SystemFunction036(buffer, (ULONG)bytes);
}
