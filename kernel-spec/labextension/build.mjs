// Builds the extension into `built/`, which is committed: `npm ci && npm run build`.
//
// The file `built/package.json` records a hash of the sources; a test compares it with the sources that are there.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['src', 'style', 'build.mjs', 'package-lock.json', 'package.json', 'tsconfig.json', 'webpack.config.js'];

/** The files of the sources, sorted. */
function files() {
  const all = SOURCES.flatMap(name =>
    name.includes('.') ? [name] : readdirSync(name).map(file => `${name}/${file}`)
  );
  return all.sort();
}

function hash() {
  const sum = createHash('sha256');
  for (const file of files()) {
    sum.update(`${file}\0`).update(readFileSync(file)).update('\0');
  }
  return sum.digest('hex');
}

const bin = name => join('node_modules', '.bin', name);
const run = (name, ...args) => execFileSync(bin(name), args, { stdio: 'inherit' });

rmSync('lib', { recursive: true, force: true });
run('tsc');

// What JupyterLab provides: all our dependencies but the one that is bundled, in any version of JupyterLab 4.
const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const provided = Object.keys(dependencies).filter(name => name !== '@codemirror/lint');
const core = join('lib', 'core');
mkdirSync(core, { recursive: true });
const ranges = name => (name.startsWith('@jupyterlab/services') ? '^7.0.0' : name.startsWith('@jupyterlab/') ? '^4.0.0' : dependencies[name]);
const meta = {
  dependencies: Object.fromEntries(provided.map(name => [name, ranges(name)])),
  jupyterlab: { singletonPackages: provided }
};
writeFileSync(join(core, 'package.json'), JSON.stringify(meta));
run('build-labextension', '--core-path', core, '.');

// A fixed name for the entry, too, and only what JupyterLab reads in package.json.
const built = join('built', 'package.json');
const data = JSON.parse(readFileSync(built, 'utf8'));
const entry = data.jupyterlab._build.load;
renameSync(join('built', entry), join('built', 'static', 'remoteEntry.js'));
const { name, version, description, license, jupyterlab } = data;
jupyterlab._build.load = 'static/remoteEntry.js';
const kept = { extension: jupyterlab.extension, _build: jupyterlab._build };
const written = { name, version, description, license, jupyterlab: kept, stratoscope: { sources: hash() } };
writeFileSync(built, JSON.stringify(written, null, 2) + '\n');
