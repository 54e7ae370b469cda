/** Colours of the page for what is drawn by hand. */

const known = new Map<string, string>();
let watched = false;

/** A colour by its name; asking the browser for one makes it work out the styles of the whole page. */
export function css(name: string): string {
  if (!watched) onTheme(() => {});
  watched = true;
  const before = known.get(name);
  if (before !== undefined) return before;
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  known.set(name, found);
  return found;
}

/** Calls back when the page turns light or dark; returns how to stop that. */
export function onTheme(again: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  // Before anybody draws again, whoever was here first.
  const fresh = () => {
    known.clear();
    again();
  };
  const theme = new MutationObserver(fresh);
  theme.observe(document.documentElement, { attributeFilter: ["style"] });
  scheme.addEventListener("change", fresh);
  return () => {
    theme.disconnect();
    scheme.removeEventListener("change", fresh);
  };
}
