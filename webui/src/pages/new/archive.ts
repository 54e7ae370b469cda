/** Unpacks archives that the user chose, in the browser: tar, tar.gz and zip. */

export interface Packed {
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const BLOCK = 512;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const upTo = (bytes: Uint8Array) => {
  const end = bytes.indexOf(0);
  return text(end < 0 ? bytes : bytes.subarray(0, end));
};

/** Throws an error whose message is shown to the user. */
export async function unpack(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<Packed[]> {
  if (/\.zip$/i.test(name)) return unzip(bytes);
  if (/\.(tar\.gz|tgz)$/i.test(name)) return untar(await through(bytes, "gzip"));
  if (/\.tar$/i.test(name)) return untar(bytes);
  throw new Error(`${name} is not a supported archive: use .tar, .tar.gz, .tgz or .zip`);
}

async function through(bytes: Uint8Array<ArrayBuffer>, format: CompressionFormat): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Returns files only. Supports the long names of GNU tar and POSIX. */
export function untar(bytes: Uint8Array<ArrayBuffer>): Packed[] {
  const files: Packed[] = [];
  let long = "";
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const head = bytes.subarray(at, at + BLOCK);
    if (head.every((byte) => byte === 0)) break;
    const size = Number.parseInt(upTo(head.subarray(124, 136)).trim() || "0", 8);
    if (Number.isNaN(size)) throw new Error("this is not a tar archive, or it is damaged");
    const kind = String.fromCharCode(head[156]!);
    const content = bytes.slice(at + BLOCK, at + BLOCK + size);
    const prefix = text(head.subarray(257, 262)) === "ustar" ? upTo(head.subarray(345, 500)) : "";
    const path = long || [prefix, upTo(head.subarray(0, 100))].filter(Boolean).join("/");
    if (kind === "L") long = upTo(content);
    else if (kind === "x") long = /\d+ path=(.*)\n/.exec(text(content))?.[1] ?? "";
    else {
      if (kind === "0" || kind === "\0") files.push({ path, bytes: content });
      long = "";
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

const END = 0x06054b50;
const STORED = 0;
const DEFLATED = 8;

/** Reads the central directory at the end of the archive, which alone is authoritative. */
async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<Packed[]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Error("this is not a zip archive, or it is damaged");
  const files: Packed[] = [];
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left -= 1) {
    const [method, packed] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true)];
    const [nameSize, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true)) as [number, number, number];
    const local = view.getUint32(at + 42, true);
    const path = text(bytes.subarray(at + 46, at + 46 + nameSize));
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const content = bytes.slice(begin, begin + packed);
    if (!path.endsWith("/")) {
      if (method !== STORED && method !== DEFLATED) throw new Error(`${path} uses a compression method that the browser cannot read`);
      files.push({ path, bytes: method === STORED ? content : await through(content, "deflate-raw") });
    }
    at += 46 + nameSize + extra + comment;
  }
  return files;
}

/** Removes a single top-level folder that contains all files. */
export function withoutTop(files: Packed[]): Packed[] {
  const tops = new Set(files.map((file) => file.path.replace(/^\.\//, "").split("/")[0]));
  const clean = files.map((file) => ({ ...file, path: file.path.replace(/^\.\//, "") }));
  if (tops.size !== 1 || clean.some((file) => !file.path.includes("/"))) return clean;
  return clean.map((file) => ({ ...file, path: file.path.slice(file.path.indexOf("/") + 1) }));
}
