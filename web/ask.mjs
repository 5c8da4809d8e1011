// Answers questions (sim/faces/app/question.h), a line of standard input each, by WebAssembly: ask.mjs BUILD SOURCES
import { createInterface } from 'node:readline';
import { simulatorHere } from './pack.mjs';

const program = await simulatorHere(process.argv[2], process.argv[3], line => process.stderr.write(`${line}\n`));
for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${(line === 'known' ? program.known() : program.answer(line)).trimEnd()}\n`);
process.stderr.write(`memory ${program.memory()}\n`);
