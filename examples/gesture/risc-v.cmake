# A toolchain file for CMake: Debian's gcc-riscv64-unknown-elf, which has no C library: the runtime's memcpy and its like do.
# The core's flags come from the network's folder.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_C_FLAGS_INIT "-ffreestanding -isystem ${CMAKE_CURRENT_LIST_DIR}/../../runtime/freestanding")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
