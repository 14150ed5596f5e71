#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(muc_llama2c_probe, muc_llama2c_read, data, size);
    return 0;
}
