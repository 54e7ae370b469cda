/** Colours of the page for what is drawn by hand. */

let known: Map<string, string> | undefined;

/** A colour by its name; asking the browser for one makes it work out the styles of the whole page. */
export function css(name: string): string {
  if (!known) {
    known = new Map();
    onTheme(() => known!.clear());
  }
  let found = known.get(name);
  if (found === undefined) known.set(name, (found = getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
  return found;
}

/** Calls back when the page turns light or dark; returns how to stop that. */
export function onTheme(again: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const theme = new MutationObserver(again);
  theme.observe(document.documentElement, { attributeFilter: ["style"] });
  scheme.addEventListener("change", again);
  return () => {
    theme.disconnect();
    scheme.removeEventListener("change", again);
  };
}
