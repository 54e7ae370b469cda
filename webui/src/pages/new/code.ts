/** The code of a new experiment, in the form that is submitted. */

import { type Packed, withoutTop } from "./archive";

export interface Item {
  path: string;
  type: number;
  /** Base64. */
  content: string;
  mtime: number;
  mode: number;
}

/** Files that no experiment needs. */
const USELESS =
  /(^|\/)(\.git|__pycache__|\.venv|\.ipynb_checkpoints|node_modules|\.mypy_cache|\.pytest_cache)(\/|$)|\.py[co]$|(^|\/)\.DS_Store$/;
export const MOST_BYTES = 95 * 1024 * 1024;
const [FILE, FOLDER] = [48, 53];
const CHUNK = 0x8000;

/** Parses a `.detignore` file; supports the usual patterns: names, folders, and `*`. */
export function ignores(text: string): (path: string) => boolean {
  const patterns = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith("#") && !line.startsWith("!"))
    .map((line) => {
      const inner = line
        .replace(/^\/|\/$/g, "")
        .replace(/[.+^${}()|[\]\\]/g, "\\$&")
        .replace(/\*\*\/?|\*|\?/g, (wildcard) => (wildcard === "?" ? "[^/]" : wildcard === "*" ? "[^/]*" : ".*"));
      return new RegExp(`${line.startsWith("/") || line.slice(0, -1).includes("/") ? "^" : "(^|/)"}${inner}(/|$)`);
    });
  return (path) => USELESS.test(path) || patterns.some((pattern) => pattern.test(path));
}

/** The files to submit, by path, without a folder that contains all of them. */
export function chosen(files: Packed[]): Packed[] {
  const mine = withoutTop(files);
  const ignored = mine.find((packed) => packed.path === ".detignore");
  const isIgnored = ignores(ignored ? new TextDecoder().decode(ignored.bytes) : "");
  return mine.filter((packed) => !isIgnored(packed.path)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

export function items(files: Packed[], now: number): Item[] {
  const folders = new Set<string>();
  for (const { path } of files)
    path
      .split("/")
      .slice(0, -1)
      .reduce((above, name) => {
        const whole = above ? `${above}/${name}` : name;
        folders.add(whole);
        return whole;
      }, "");
  const mtime = Math.floor(now / 1000);
  return [
    ...[...folders].sort().map((path) => ({ path, type: FOLDER, content: "", mtime, mode: 0o755 })),
    ...files.map(({ path, bytes }) => ({ path, type: FILE, content: base64(bytes), mtime, mode: 0o644 })),
  ];
}

/** Files that look like a configuration, the likeliest first. */
export const configurations = (files: Packed[]) =>
  files
    .filter((file) => /\.ya?ml$/.test(file.path) && !file.path.includes("/"))
    .filter((file) => /(^|[{,"\s])(searcher|entrypoint)"?\s*:/m.test(new TextDecoder().decode(file.bytes)))
    .sort((a, b) => Number(/^config/.test(b.path)) - Number(/^config/.test(a.path)));
