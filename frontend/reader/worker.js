// Opens a file in a worker, so that the page goes on meanwhile. The page posts the file first, and then anything to have
// the next messages. It is posted a number, the share that is done; a list of messages, which is empty after the last;
// or the name of what failed.
const PART_BYTES = 4 << 20;
// Reading takes so much of the time; the rest is for understanding what was read.
const READING = 0.2;
let reader;

function part() {
  const messages = [];
  for (let bytes = 0; bytes < PART_BYTES;) {
    const at = reader.next() >>> 0;
    if (!at) break;
    messages.push(new Uint8Array(reader.memory.buffer, at, reader.length()).slice());
    bytes += messages.at(-1).length;
  }
  postMessage(messages, messages.map(message => message.buffer));
}

async function load() {
  const page = { progress: share => postMessage(READING + (1 - READING) * share) };
  reader = (await WebAssembly.instantiateStreaming(fetch('./reader.wasm'), { page })).instance.exports;
}

// Writes the file and its name into the module's memory, and returns the length of the name.
async function read(file) {
  const name = new TextEncoder().encode(file.name);
  const at = reader.room(file.size + name.length) >>> 0;
  const pieces = file.stream().getReader();
  let n = 0;
  for (let piece; !(piece = await pieces.read()).done;) {
    if (n + piece.value.length > file.size) throw Error('the file has grown');
    new Uint8Array(reader.memory.buffer).set(piece.value, at + n);
    n += piece.value.length;
    postMessage(READING * n / file.size);
  }
  if (n < file.size) throw Error('the file has shrunk');
  new Uint8Array(reader.memory.buffer).set(name, at + n);
  return name.length;
}

onmessage = async ({ data }) => {
  let step = 'away';
  try {
    if (!reader) {
      await load();
      step = 'unread';
      const name = await read(data);
      step = 'stopped';
      reader.open(name);
    }
    part();
  } catch (e) {
    postMessage(e instanceof WebAssembly.RuntimeError ? 'stopped' : step);
  }
};
