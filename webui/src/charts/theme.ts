/** The page's colours, for drawing on canvases. */

const known = new Map<string, string>();
let probe: HTMLElement | undefined;

/** A token's colour in the current theme, cached because each lookup makes the browser compute styles. */
export function css(name: string): string {
  const before = known.get(name);
  if (before !== undefined) return before;
  // A token holds both themes; only an element that uses it resolves to the current one.
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

/** Calls `again` when the theme changes; returns a function that unsubscribes. */
export function onTheme(again: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  // Clears the cache before any listener redraws.
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
