/** The page's colours, for drawing on canvases. */

const colours = new Map<string, string>();
let probe: HTMLElement | undefined;

/** A token's colour in the current theme, cached because each lookup makes the browser compute styles. */
export function css(name: string): string {
  const before = colours.get(name);
  if (before !== undefined) return before;
  // A token holds both themes; only an element that uses it resolves to the current one.
  if (!probe) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
    onTheme(() => {});
  }
  probe.style.color = `var(${name})`;
  const colour = getComputedStyle(probe).color;
  colours.set(name, colour);
  return colour;
}

/** Calls `again` when the theme changes; returns a function that unsubscribes. */
export function onTheme(again: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  // Clears the cache before any listener redraws.
  const fresh = () => {
    colours.clear();
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
