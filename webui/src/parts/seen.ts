/** The projects last visited in this browser. */

const KEY = "projects";
const KEPT = 3;

export function seenProjects(): [number, string][] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "[]");
  } catch {
    return [];
  }
}

export function seeProject(id: number, name: string) {
  const others = seenProjects().filter(([other]) => other !== id);
  localStorage.setItem(KEY, JSON.stringify([[id, name], ...others].slice(0, KEPT)));
}
