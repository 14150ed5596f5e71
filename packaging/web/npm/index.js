// index.js - muc in memory: run(words, files) is a command line without a disk.
'use strict';
const fs = require('fs');
const path = require('path');
const createMuc = require('./muc.js');
const { runMuc } = require('./muc_run.js');

const compiled = WebAssembly.compile(fs.readFileSync(path.join(__dirname, 'muc.wasm')));

function builtIn() {
    const folder = path.join(__dirname, 'models/rescue');
    return Object.fromEntries(fs.readdirSync(folder).map(name => [`/models/rescue/${name}`, fs.readFileSync(path.join(folder, name))]));
}

/**
 * Runs `muc WORDS...`.
 * files: { '/net.onnx': Uint8Array } that the command may read, beside the built-in model, /models/rescue;
 * wanted: a file or folder that it writes.
 * Gives { status, text, errors, files }: the exit status, standard output, standard error, and what was wanted.
 */
async function run(words, files = {}, wanted = '') {
    let text = '';
    const answer = await runMuc(createMuc, await compiled, words, { ...builtIn(), ...files }, wanted, line => { text += line + '\n'; });
    return { ...answer, text };
}

module.exports = { run };
