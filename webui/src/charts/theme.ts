/** Colours of the page for what is drawn by hand. */

const known = new Map<string, string>();
let probe: HTMLElement | undefined;

/** A token's colour in the theme that is shown; asking the browser makes it work out styles, so each is asked for once. */
export function css(name: string): string {
  const before = known.get(name);
  if (before !== undefined) return before;
  // A token holds both themes: only an element that uses it has the one that is shown.
  if (!probe) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
    onTheme(() => {});
  }
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
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
  theme.observe(document.documentElement, { attributeFilter: ["style", "data-theme", "class"] });
  scheme.addEventListener("change", fresh);
  return () => {
    theme.disconnect();
    scheme.removeEventListener("change", fresh);
  };
}
