import { get } from "../../api/client";
import { plain } from "../../lists/columns";
import { csv, save } from "../../parts/file";
import { failed, toast } from "../../ui/toast";
import type { Found } from "./rows";
import { many } from "../../parts/format";

const FILE_PAGE = 2000;

/** Exports all matching experiments, with the columns shown, as a file. */
export async function exportAll(path: (offset: number, limit: number) => string, shown: string[]) {
  const ids = shown.filter((id) => id !== "course");
  const lines: unknown[][] = [ids];
  try {
    for (let offset = 0; ; offset += FILE_PAGE) {
      const page = await get<Found>(path(offset, FILE_PAGE));
      lines.push(...page.experiments.map((row) => ids.map((id) => plain(id, row))));
      if (offset + FILE_PAGE >= page.pagination.total) break;
    }
    save("experiments.csv", csv(lines));
    toast({ text: `Exported ${many(lines.length - 1, "experiment")}` });
  } catch (error) {
    failed(error, "Export");
  }
}
