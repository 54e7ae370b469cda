/** Which chart fills the window; the link holds it. */

import { useLink } from "./link";

export function useFull(title: string): [boolean, (full: boolean) => void] {
  const { params, set } = useLink();
  return [params.get("full") === title, (full) => set({ full: full ? title : "" })];
}
