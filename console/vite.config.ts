// Builds the console into `dist`, with `files.rs`, the module that the server compiles in.
//
// All addresses are relative, so that the console works behind a path prefix. No file is inlined, because the server's
// Content-Security-Policy permits neither inline code nor data: addresses.
import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

/** The module of Rust with all built files, in the order of their names. */
function rustModule(): Plugin {
  return {
    name: 'rust-module',
    enforce: 'post',
    generateBundle(_, bundle) {
      const lines = Object.keys(bundle).sort().map((name) => `    ("${name}", include_bytes!("${name}")),\n`);
      const source = `//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
${lines.join('')}];
`;
      this.emitFile({ type: 'asset', fileName: 'files.rs', source });
    },
  };
}

/** The licences of the packages whose code is in the built files: each demands that its text goes with its code. */
function licences(): Plugin {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
      const folders = modules.flatMap((id) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []);
      const texts = [...new Set(folders)].sort().map((folder) => {
        const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as { name: string; version: string };
        const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
        if (!file) throw new Error(`${name} has no file with its licence`);
        return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`;
      });
      this.emitFile({ type: 'asset', fileName: '_console/licences.txt', source: texts.join(`\n${'-'.repeat(80)}\n\n`) });
    },
  };
}

const FUNCTIONS = 'virtual:functions';
const FUNCTIONS_PAGE = new URL('../docs/reference/sql.md', import.meta.url);

/** The module with the functions of SQL, which the page about them lists. */
function functionNames(): Plugin {
  return {
    name: 'function-names',
    resolveId: (id) => (id === FUNCTIONS ? id : null),
    load(id) {
      if (id !== FUNCTIONS) return null;
      const [, list = ''] = readFileSync(FUNCTIONS_PAGE, 'utf8').split(/<!-- functions: (?:begin|start|end)[^>]*-->/);
      const names = [...new Set([...list.matchAll(/`([a-z_]\w*)`/g)].map(([, name]) => name))].sort();
      if (names.length === 0) throw new Error(`${FUNCTIONS_PAGE.pathname} has no list of functions`);
      return `export default ${JSON.stringify(names.join(' '))}.split(' ');`;
    },
  };
}

export default defineConfig({
  base: './',
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: '_console/console-[hash].js',
        chunkFileNames: '_console/[name]-[hash].js',
        assetFileNames: '_console/[name]-[hash][extname]',
      },
    },
  },
  plugins: [licences(), functionNames(), rustModule()],
});
