/* markers.h - two instructions that do nothing, around what bench/instructions/count counts.
 * Neither is counted itself. */
#ifndef MARKERS_H
#define MARKERS_H

#if defined(__arm__)
#define COUNT_BEGIN() __asm__ volatile("mov r12, r12" ::: "memory")
#define COUNT_END() __asm__ volatile("mov r10, r10" ::: "memory")
#else
#define COUNT_BEGIN() \
    __asm__ volatile(".option push\n.option norvc\naddi x0, x0, 1\n.option pop" ::: "memory")
#define COUNT_END() \
    __asm__ volatile(".option push\n.option norvc\naddi x0, x0, 2\n.option pop" ::: "memory")
#endif

#endif
