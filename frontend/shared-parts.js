// Code that several parts of the page share: many small modules in one file, loaded with the first part that needs it.
// A failed load is not kept, so that another try begins anew.
let pack;
function shared(from, to) {
  if (!pack) {
    const load = fetch(new URL('./shared.bin', import.meta.url)).then(answer => {
      if (!answer.ok) throw Error(`${answer.url}: ${answer.status}`);
      return answer.arrayBuffer();
    });
    load.catch(() => { if (pack === load) pack = undefined; });
    pack = load;
  }
  return pack.then(bytes => new Response(bytes.slice(from, to), { headers: { 'Content-Type': 'application/wasm' } }));
}
