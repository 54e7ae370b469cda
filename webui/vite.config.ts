import { copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vitest/config";

const OUT = "../services/rest_routes/pages/static/webui";
/** Bytes as they are sent: with more of them the first page is late. */
const MOST_ENTRY = 140_000;
const MOST_LAZY = 80_000;
const MOST_FONT = 28_000;
/** Each copy of the font comes with its licence. */
const FONT_LICENSE = "node_modules/@fontsource-variable/inter/LICENSE";
const PACKED = /\.(js|css|svg)$/;

/** Puts a packed file beside each, for the gateway to send, and fails where there is too much to send. */
const packed = (): Plugin => {
  return {
    name: "packed",
    apply: "build",
    writeBundle({ dir = OUT }, bundle) {
      const sizes = new Map<string, number>();
      const chunks = new Map<string, { imports: string[]; isEntry: boolean }>();
      for (const [name, one] of Object.entries(bundle)) {
        if (one.type === "chunk") chunks.set(name, one);
        if (!PACKED.test(name)) continue;
        const content = brotliCompressSync(readFileSync(join(dir, name)), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
        writeFileSync(join(dir, `${name}.br`), content);
        sizes.set(name, content.length);
      }
      const first = withImports(
        [...chunks].filter(([, one]) => one.isEntry).map(([name]) => name),
        chunks,
      );
      const bytes = [...first].reduce((total, name) => total + sizes.get(name)!, 0);
      const lazy = [...chunks.keys()].filter((name) => !first.has(name)).toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
      console.log(`first script ${bytes} bytes of brotli; the largest lazy one ${sizes.get(lazy[0]!)}: ${lazy[0]}`);
      if (bytes > MOST_ENTRY) throw new Error(`the first script has ${bytes} bytes of brotli, at most ${MOST_ENTRY} are wanted`);
      const over = lazy.filter((name) => sizes.get(name)! > MOST_LAZY);
      takeFonts(Object.keys(bundle), dir);
      if (over.length) throw new Error(`more than ${MOST_LAZY} bytes of brotli: ${over.join(", ")}`);
    },
  };
};

/** Puts their licence beside the fonts, and fails where they were not cut. */
function takeFonts(names: string[], dir: string) {
  const fonts = names.filter((name) => name.endsWith(".woff2"));
  const large = fonts.filter((name) => statSync(join(dir, name)).size > MOST_FONT);
  if (large.length) throw new Error(`more than ${MOST_FONT} bytes: ${large.join(", ")}; cut_font.mjs says what is kept`);
  copyFileSync(FONT_LICENSE, join(dir, "assets", "inter-license.txt"));
}

/** Chunks, and all that they import at once. */
function withImports(left: string[], chunks: Map<string, { imports: string[] }>): Set<string> {
  const found = new Set<string>();
  while (left.length) {
    const name = left.pop()!;
    if (!found.has(name)) left.push(...(chunks.get(name)?.imports ?? []));
    found.add(name);
  }
  return found;
}

// The gateway serves what is built here below /det/.
export default defineConfig({
  base: "/det/",
  plugins: [react(), packed()],
  // Tests are of pure functions: they share modules, instead of loading them once for each file.
  // A test that hangs is ended by whoever runs them; on a busy host, five seconds are not a hang.
  test: { pool: "threads", isolate: false, maxWorkers: 1, testTimeout: 120_000 },
  build: { outDir: OUT, emptyOutDir: true, chunkSizeWarningLimit: 800 },
  // The gateway takes changes from pages of its own origin alone: the `Host` stays that of the page.
  server: { proxy: { "/api": { target: process.env.DET_MASTER ?? "http://localhost:8080", changeOrigin: false } } },
});
