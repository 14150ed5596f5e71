// page.js - what the page does: asks muc in a worker, and shows what it answers.
'use strict';
const find = selector => document.querySelector(selector);
const waiting = new Map();
const worker = startWorker();
let last = 0;
let model = { words: ['/models/rescue'], files: {} }; // the built-in one
let program = null; // of the built-in model for µThinker

function startWorker() {
    const model = JSON.parse(find('#model').textContent);
    const start = `const MUC_WASM = "${find('#wasm').textContent}", MUC_MODEL = ${JSON.stringify(model)};\n`;
    const text = [find('#module').textContent, start, find('#worker').textContent];
    const made = new Worker(URL.createObjectURL(new Blob(text, { type: 'text/javascript' })));
    made.onmessage = event => {
        const asked = waiting.get(event.data.id);
        if (event.data.line !== undefined) {
            asked.lines.push(event.data.line);
            if (asked.tell)
                asked.tell(event.data.line);
            return;
        }
        waiting.delete(event.data.id);
        asked.end({ ...event.data, text: asked.lines.join('\n') });
    };
    return made;
}

function ask(words, { files = {}, wanted = '', tell } = {}) {
    return new Promise(end => {
        waiting.set(++last, { lines: [], end, tell });
        worker.postMessage({ id: last, words, files, wanted });
    });
}

function element(name, text, values = {}) {
    const made = Object.assign(document.createElement(name), values);
    made.textContent = text;
    return made;
}

function say(where, text, failed) {
    where.textContent = text;
    where.classList.toggle('failed', Boolean(failed));
}

/* ---- does it fit ---- */

const kilobytes = (used, limit) => used === undefined ? '' :
    `${Math.ceil(used / 1024).toLocaleString('en')} of ${limit ? Math.floor(limit / 1024).toLocaleString('en') + ' KiB' : 'any'}`;

function addMachine(table, row) {
    const line = table.insertRow();
    const time = row.ms_least === undefined ? '' : row.ms_least === row.ms_most ? row.ms_least.toPrecision(3) :
        `${row.ms_least.toPrecision(2)} to ${row.ms_most.toPrecision(2)}`;
    line.className = row.fits === 'yes' ? 'fits' : 'not';
    for (const text of [row.machine, row.weights || '', row.fits, kilobytes(row.flash_bytes, row.flash_limit),
        kilobytes(row.ram_bytes, row.ram_limit), time])
        line.append(element('td', text));
    const last = line.insertCell();
    if (row.fits === 'yes' && !row.weights) { // int8 of a float network needs samples
        const button = element('button', 'details');
        button.onclick = () => showDetails(row);
        last.append(button);
    }
}

async function fit() {
    const table = find('#machines tbody'), status = find('#status');
    say(status, 'planning for every machine ...');
    table.replaceChildren();
    find('#details').hidden = true;
    const answer = await ask(['fit', ...model.words, '--json'], { files: model.files });
    if (!answer.text.startsWith('{')) {
        say(status, answer.errors, true);
        return;
    }
    const told = JSON.parse(answer.text);
    for (const row of told.machines)
        addMachine(table, row);
    find('#machines').classList.toggle('alike', !told.machines.some(row => row.weights)); // a column of nothing is hidden
    for (const row of told.why_not || [])
        for (const line of table.rows)
            if (line.cells[0].textContent === row.machine && line.className === 'not')
                line.title = row.reason;
    const fitting = told.machines.filter(row => row.fits === 'yes').length;
    say(status, `${model.words[0].split('/').pop()} fits ${fitting} of ${told.machines.length}; point at one that it does not fit to see why`);
}

// what muc report says of the program or folder for a machine
async function showDetails(row) {
    const status = find('#status'), frame = find('#report');
    say(status, `compiling for ${row.machine} ...`);
    const made = await ask(['compile', ...model.words, '--target', row.target, '--machine', row.machine, '-o', '/out'],
        { files: model.files, wanted: '/out' });
    if (made.status !== 0) {
        say(status, made.errors, true);
        return;
    }
    const report = await ask(['report', '/out', '--format', 'html'], { files: made.files });
    find('#details').hidden = false;
    find('#details pre').textContent = made.text;
    frame.srcdoc = report.text;
    frame.hidden = report.status !== 0;
    say(status, report.status === 0 ? `compiled for ${row.machine}` : report.errors, report.status !== 0);
    find('#details').scrollIntoView();
}

async function take(list) {
    const files = {};
    for (const file of list)
        files[`/drop/${file.name}`] = new Uint8Array(await file.arrayBuffer());
    const names = Object.keys(files);
    const whole = names.some(name => name.endsWith('/config.json'));
    const weights = names.filter(name => !/\.(arch|json)$/.test(name));
    const description = names.find(name => name.endsWith('.arch'));
    model = { words: whole ? ['/drop'] : [weights[0] || names[0], ...(description ? ['--arch', description] : [])], files };
    await fit();
}

/* ---- µThinker, token by token ---- */

function drawStages(report) {
    const board = find('#stages');
    const inLayers = report.stage_layers.filter(row => row.layer !== undefined);
    const around = report.stage_layers.filter(row => row.layer === undefined);
    const first = around.filter(row => row.stage === 'EMBED');
    const rows = [...first, ...inLayers, ...around.filter(row => row.stage !== 'EMBED')];
    let line, layer;
    board.replaceChildren();
    const cells = rows.map(row => {
        if (!line || layer !== row.layer) {
            board.append(line = element('div', ''));
            line.append(element('b', row.layer === undefined ? '' : `layer ${row.layer}`));
            layer = row.layer;
        }
        const cell = element('span', row.stage, { title: `${row.cycles} cycles` });
        line.append(cell);
        return { cell, cycles: row.cycles };
    });
    find('#clock').textContent = `${report.tokens_per_second.toFixed(0)} tokens a second on the machine, ` +
        `${report.millijoules_per_token.toPrecision(3)} mJ a token; ${report.binding_roof} binds`;
    return cells;
}

async function lightUp(cells) {
    const whole = cells.reduce((sum, { cycles }) => sum + cycles, 0);
    for (const { cell, cycles } of cells) {
        cell.classList.add('lit');
        await new Promise(go => setTimeout(go, 400 * cycles / whole));
        cell.classList.remove('lit');
    }
}

async function speak() {
    const button = find('#speak'), answer = find('#answer'), status = find('#spoken');
    button.disabled = true;
    answer.textContent = '';
    try {
        if (!program) {
            say(status, 'compiling the built-in model for µThinker ...');
            const made = await ask(['compile', '/models/rescue', '-o', '/rescue.utp'], { wanted: '/rescue.utp' });
            if (made.status !== 0)
                throw new Error(made.errors);
            program = made.files;
        }
        const report = await ask(['report', '/rescue.utp', '--json'], { files: program });
        const cells = drawStages(JSON.parse(report.text));
        say(status, 'running on the simulator ...');
        let shown = Promise.resolve();
        const done = await ask(['run', '/rescue.utp', '--json-lines', '--prompt', find('#prompt').value], {
            files: program,
            tell: line => {
                const row = JSON.parse(line);
                if (row.prompt_tokens === undefined)
                    shown = shown.then(() => lightUp(cells)).then(() => { answer.textContent += row.text; });
            },
        });
        await shown;
        say(status, done.status === 0 ? 'every bit is the machine\'s' : done.errors, done.status !== 0);
    } catch (error) {
        say(status, error.message, true);
    }
    button.disabled = false;
}

addEventListener('dragover', event => event.preventDefault());
addEventListener('drop', event => {
    event.preventDefault();
    take(event.dataTransfer.files);
});
find('#choose').onchange = event => take(event.target.files);
find('#builtin').onclick = () => {
    model = { words: ['/models/rescue'], files: {} };
    fit();
};
find('#speak').onclick = speak;
