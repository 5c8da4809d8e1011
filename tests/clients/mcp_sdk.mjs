// `dtsim serve --mcp` by the protocol's own SDK, which asks for what the server promises and checks each message by its schemas.
// No other command calls this: it needs Node.js and a package of npm.
//   npm install --prefix /tmp/mcp @modelcontextprotocol/sdk
//   cp tests/clients/mcp_sdk.mjs /tmp/mcp && node /tmp/mcp/mcp_sdk.mjs build/dtsim
import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js';

const dtsim = path.resolve(process.argv[2]);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'dtsim-mcp-'));
const stages = {model: {stages: {forward: '1 s', backward: '2 s'}}, cluster: 'ideal', batch: {micro_batches: 4}, strategy: {pipeline: 2}};
const endless = {...stages, batch: {micro_batches: 2048}, strategy: {pipeline: 32}, simulation: {jitter: 0.1, repeat: 1000}};
const client = new Client({name: 'test', version: '1'});

await client.connect(new StdioClientTransport({command: dtsim, args: ['serve', '--mcp'], cwd: folder}));
assert.equal(client.getServerVersion().name, 'dtsim');
assert.ok(client.getInstructions().length > 100);
const {tools} = await client.listTools();
for (const name of ['run', 'explain', 'plan', 'check', 'compare', 'import', 'emit', 'collective', 'train'])
    assert.ok(tools.some(tool => tool.name === name), name);

const run = await client.callTool({name: 'run', arguments: {scenario: stages}});
assert.equal(JSON.parse(run.content[0].text).iteration_time_s, 15);

const wrong = await client.callTool({name: 'run', arguments: {scenario: {...stages, bach: 1}}});
assert.ok(wrong.isError && wrong.structuredContent.exit_code === 4, JSON.stringify(wrong));
assert.ok(wrong.structuredContent.errors[0].message.includes("did you mean 'batch'"));

const rows = await client.callTool({name: 'compare', arguments: {scenario: [stages], set: {'batch.micro_batches': Array.from({length: 99}, (_, i) => i + 2)}}});
const text = rows.content.map(part => part.text).join('');
assert.ok(text.length <= 25000);
assert.equal(JSON.parse(fs.readFileSync(path.join(folder, text.trim().split(' ').pop()))).length, 99);

const told = [], abort = new AbortController();
await assert.rejects(client.callTool({name: 'run', arguments: {scenario: endless}}, undefined, {
    signal: abort.signal, onprogress: progress => { told.push(progress); if (told.length === 2) abort.abort('enough'); }}));
assert.ok(told[1].progress > told[0].progress && told[1].total === 50, JSON.stringify(told));
const late = await client.callTool({name: 'run', arguments: {scenario: endless, budget: ['0.5 s']}});
assert.equal(late.structuredContent.exit_code, 7);
await assert.rejects(client.callTool({name: 'none', arguments: {}}), /no tool/);
await client.ping();
await client.close();
fs.rmSync(folder, {recursive: true});
console.log(`${tools.length} tools, all as the SDK expects`);
