// muc_run.js - runs one command of muc in a module of its own, for the page's worker and for Node.js.
'use strict';

// a file, or all files of a folder
function collect(system, path, files) {
    if (!system.isDir(system.stat(path).mode)) {
        files[path] = system.readFile(path);
        return;
    }
    for (const name of system.readdir(path))
        if (name !== '.' && name !== '..')
            collect(system, `${path}/${name}`, files);
}

// wasm: the compiled module; files: { path: bytes }; wanted: a file or folder that the command writes; tell: called with each
// line of standard output. Gives { status, errors, files }.
async function runMuc(createMuc, wasm, words, files, wanted, tell) {
    const errors = [], found = {};
    const muc = await createMuc({
        instantiateWasm(imports, receive) {
            WebAssembly.instantiate(wasm, imports).then(instance => receive(instance, wasm));
            return {};
        },
        print: tell,
        printErr: line => errors.push(line),
        quit: (status, why) => { throw why; }, // where there is a process, it goes on
    });
    for (const [path, bytes] of Object.entries(files)) {
        muc.FS.mkdirTree(path.slice(0, path.lastIndexOf('/')) || '/');
        muc.FS.writeFile(path, bytes);
    }
    muc.FS.ignorePermissions = true; // umask takes all of them here
    let status;
    try {
        status = muc.callMain(words);
    } catch (error) {
        if (error.name !== 'ExitStatus')
            throw error;
        status = error.status;
    }
    if (wanted && muc.FS.analyzePath(wanted).exists)
        collect(muc.FS, wanted, found);
    return { status, errors: errors.join('\n'), files: found };
}

if (typeof module !== 'undefined')
    module.exports = { runMuc };
