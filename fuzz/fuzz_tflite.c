#include "formats/network.h"
#include "formats/tflite/flatbuffer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const muc_bytes bytes = { data, size, "fuzz" };

    if (muc_flat_probe(bytes))
        fuzz_network(bytes);
    return 0;
}
