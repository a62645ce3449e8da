#include "fiber.h"

#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the host device's context switch is written for x86-64"
#endif

asm(R"(
.text
.globl fsr_switch
.hidden fsr_switch
.type fsr_switch,@function
fsr_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fsr_switch,.-fsr_switch
.section .note.GNU-stack,"",@progbits
.text
)");

namespace fsr {

void open_stacks(const StackPool& pool, unsigned first, unsigned count) {
  for (unsigned i = first; i < first + count; i++) mprotect(pool.base + i * pool.stride, 4096, PROT_NONE);
}

}  // namespace fsr
