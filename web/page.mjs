// dtsim.html: plots/report/app.html with what the page knows and the simulator inside: page.mjs BUILD SOURCES LIBRARIES OUTPUT
import { readFileSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { join } from 'node:path';
import { filesOf, programOf, scriptOf, simulatorHere } from './pack.mjs';

const [build, sources, libraries, output] = process.argv.slice(2);
const notices = [['dtsim', join(sources, 'LICENSE')], ['libyaml', join(libraries, 'libyaml/License')], ['jansson', join(libraries, 'jansson/LICENSE')],
  ['xxHash', join(libraries, 'xxhash/LICENSE')], ['zlib', join(libraries, 'zlib/README')], ['emscripten, with musl, compiler-rt and dlmalloc', '/usr/share/doc/emscripten/copyright']];
// Parts as plots/report/src/data.js reads them.
const parts = all => deflateSync(Buffer.concat(Object.entries(all).flatMap(([name, bytes]) => [Buffer.from(`${name} ${Buffer.byteLength(bytes)}\n`), Buffer.from(bytes)])), { level: 9 }).toString('base64');
const put = (page, old, text) => {
  if (page.split(old).length !== 2) throw new Error(`app.html has not one ${old}`);
  return page.replace(old, () => text);
};

const simulator = await simulatorHere(build, sources), known = simulator.known();
if (JSON.parse(known).errors) throw new Error(known);
let page = readFileSync(join(sources, 'plots/report/app.html'), 'utf8');
page = put(page, " connect-src 'self';", ' worker-src blob:;');
page = put(page, "script-src 'sha256-", "script-src 'wasm-unsafe-eval' 'sha256-");
page = put(page, '<title>dtsim report</title>', '<title>dtsim</title>');
page = put(page, 'id="data"></script>', `id="data">${parts({ page: '{}', known })}</script>
<script type="text/plain" id="simulator">${parts({ 'worker.js': scriptOf(build, sources), 'program.wasm': programOf(build), ...filesOf(sources) })}</script>`);
page = put(page, '\n-->\n</body>', `\n\n${notices.map(([name, path]) => `${name}\n${readFileSync(path, 'utf8').trim()}`).join('\n\n').replaceAll('--', '- -')}\n-->\n</body>`);
writeFileSync(output, page);
console.log(`${output}: ${page.length} B`);
