# A toolchain file for CMake: Debian's gcc-arm-none-eabi. The core's flags come from the networks' folders.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
