/** Files that came with an experiment. */

import { send } from "../api/client";

export interface FileNode {
  path: string;
  name: string;
  isDir: boolean;
  contentLength: number;
  files: FileNode[];
}
const LARGEST = 500_000;

/** Text files, in order. */
export const files = (tree: FileNode[]): FileNode[] =>
  tree.flatMap((fileNode) => (fileNode.isDir ? files(fileNode.files) : fileNode.contentLength <= LARGEST ? [fileNode] : []));

const text = (base64: string) => new TextDecoder().decode(Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)));

export const fileText = async (id: number, path: string): Promise<string> =>
  text((await send<{ file: string }>("POST", `experiments/${id}/file`, { path })).file);

/** The file that a traceback's path refers to: the longest path of the tree that it ends with. */
export function meant(tree: FileNode[], path: string): string {
  const matching = files(tree)
    .map((file) => file.path)
    .filter((other) => path === other || path.endsWith(`/${other}`))
    .sort((a, b) => b.length - a.length);
  return matching[0] ?? path;
}
