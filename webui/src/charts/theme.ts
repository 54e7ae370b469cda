/** Colours of the page for what is drawn by hand. */

export const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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
