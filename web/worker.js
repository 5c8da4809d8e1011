// The simulator in a worker of the page, or in node: emcc's dtsimModule() stands before this text.
// files: {path: bytes}; said(text): what the program wrote to its standard error.
async function simulator(module, files, said) {
  const program = await dtsimModule({
    instantiateWasm: (imports, done) => { WebAssembly.instantiate(module, imports).then(done); return {}; },
    print: said, printErr: said,
  });
  for (const [path, bytes] of Object.entries(files)) {
    program.FS.mkdirTree(`/${path.slice(0, path.lastIndexOf('/'))}`);
    program.FS.writeFile(`/${path}`, bytes);
  }
  program.FS.chdir('/');
  const given = text => {
    const bytes = new TextEncoder().encode(text), at = program._malloc(bytes.length + 1);
    program.HEAPU8.set(bytes, at);
    program.HEAPU8[at + bytes.length] = 0;
    return at;
  };
  const told = at => { const text = program.UTF8ToString(at); program._free(at); return text; };
  const cache = program._web_cache();
  const answer = question => { const at = given(question); try { return told(program._web_answer(cache, at)); } finally { program._free(at); } };
  return { answer, known: () => told(program._web_known()), lost: (why, how) => told(program._web_lost(why, given(how))),
    memory: () => program.HEAPU8.length };
}

if (typeof WorkerGlobalScope !== 'undefined') {
  let words = [], ready = null;
  onmessage = async ({ data }) => {
    try {
      if (data.module) ready = simulator(data.module, data.files, line => { words = [...words.slice(-20), line]; });
      const program = await ready;
      if (data.question !== undefined) postMessage({ id: data.id, answer: program.answer(data.question), memory: program.memory() });
      else if (data.lost) postMessage({ id: data.id, answer: program.lost(...data.lost) });
    } catch (error) { postMessage({ id: data.id, died: words.join(' ') || `${error?.message ?? error}` }); }
  };
}
