// The runtime's own new and delete.
//
// The program's new and delete are the runtime's to define (new_delete.cpp), and in a kernel they are the device's. What the
// runtime itself allocates while it serves a kernel must not end there. So every file of the runtime but that one includes
// this: the assembler replaces the names.
#ifndef EMU_OWN_NEW_HPP
#define EMU_OWN_NEW_HPP

#include <new>

asm(R"(
.weakref _Znwm, emu_runtime_new
.weakref _Znam, emu_runtime_new
.weakref _ZnwmRKSt9nothrow_t, emu_runtime_new
.weakref _ZdlPv, emu_runtime_delete
.weakref _ZdaPv, emu_runtime_delete
.weakref _ZdlPvm, emu_runtime_delete
.weakref _ZdaPvm, emu_runtime_delete
)");

#endif
