// muc_worker.js - runs commands of muc beside the page. A message is { id, words, files: { path: bytes }, wanted: path };
// answers are { id, line } for each line of standard output as it comes, then { id, status, errors, files }.
// createMuc, runMuc, MUC_WASM and MUC_MODEL stand before this text: the module and { path: file }, as gzip in base64.

async function unpack(text) {
    const packed = new Blob([Uint8Array.from(atob(text), c => c.charCodeAt(0))]);
    return new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());
}

async function prepare() {
    const files = await Promise.all(Object.entries(MUC_MODEL).map(async ([path, text]) => [path, await unpack(text)]));
    return { wasm: await WebAssembly.compile(await unpack(MUC_WASM)), model: Object.fromEntries(files) };
}

const ready = prepare();
onmessage = async event => {
    const { id, words, files, wanted } = event.data;
    try {
        const { wasm, model } = await ready;
        const answer = await runMuc(createMuc, wasm, words, { ...model, ...files }, wanted, line => postMessage({ id, line }));
        postMessage({ id, ...answer });
    } catch (error) {
        postMessage({ id, status: 1, errors: `muc stopped: ${error.message || error}`, files: {} });
    }
};
