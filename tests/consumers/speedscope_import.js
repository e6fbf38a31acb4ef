// speedscope_import.js BUNDLE FILE...: what speedscope's own importer makes of files, as JSON. The
// bundle is the page's, so it is run among stand-ins for all that a browser has; only its importer
// is called.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");
const zlib = require("zlib");

const anything = new Proxy(function () {}, {
  get: (_, key) => (key === "then" ? undefined : key === Symbol.toPrimitive ? () => "" : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
const nothing = () => 0;

function importerOf(bundle) {
  const names = /\(([\w$]+),\{importFromFileSystemDirectoryEntry:/.exec(bundle)[1];
  const escaped = names.replace(/\$/g, "\\$");
  const begin = new RegExp(`\\(([\\w$]+)\\(\\),${escaped}\\)`).exec(bundle)[1];
  const opening = '"use strict";(()=>{';
  if (!bundle.startsWith(opening)) throw new Error("the bundle opens in another way");
  const hooked = opening + `globalThis.importer=()=>(${begin}(),${names});` +
    bundle.slice(opening.length);
  const context = { console: { log: nothing, warn: nothing, error: nothing }, TextDecoder, URL,
    TextEncoder, performance, atob, btoa, Blob, setTimeout: nothing, setInterval: nothing,
    requestAnimationFrame: nothing, fetch: anything, addEventListener: nothing };
  context.window = context.self = context;
  for (const name of ["document", "location", "navigator", "localStorage",
    "history", "matchMedia", "Image", "FileReader"]) context[name] = anything;
  vm.createContext(context);
  try {
    vm.runInContext(hooked, context);
  } catch (error) {
    // the page itself does not come up here, and need not
    if (!context.importer) throw error;
  }
  return context.importer();
}

function describe(profile) {
  const functions = {};
  profile.forEachFrame((frame) => {
    const total = functions[frame.name] || { self: 0, total: 0, file: frame.file || null };
    total.self += frame.getSelfWeight();
    total.total += frame.getTotalWeight();
    functions[frame.name] = total;
  });
  return { name: profile.getName(), unit: profile.getWeightUnit(),
    weight: profile.getTotalNonIdleWeight(), functions };
}

async function main() {
  const [bundle, ...files] = process.argv.slice(2);
  const importer = importerOf(fs.readFileSync(bundle, "utf8"));
  const said = [];
  for (const file of files) {
    const stored = fs.readFileSync(file);
    const plain = stored[0] === 0x1f && stored[1] === 0x8b ? zlib.gunzipSync(stored) : stored;
    const bytes = new Uint8Array(plain).buffer;
    const group = await importer.importProfilesFromArrayBuffer(path.basename(file), bytes);
    said.push(group ? { name: group.name, profiles: group.profiles.map(describe) } : null);
  }
  process.stdout.write(JSON.stringify(said));
}

main();
