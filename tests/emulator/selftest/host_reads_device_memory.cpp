// expect: host-access
#include "selftest.hpp"
int main() {
    int* p = device_array<int>(1);
    return *p;
}
