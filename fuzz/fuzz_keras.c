#include "formats/network.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const muc_source source = { .path = "fuzz", .bytes = { data, size, "fuzz" } };

    if (muc_keras_probe_network(&source))
        fuzz_network(source.bytes);
    return 0;
}
