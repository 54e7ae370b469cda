/** Everything that opens above a page, together with the library it uses: one chunk. */

export { DialogBox } from "./dialog";
export { Host } from "./host";
export { MenuBox, PopoverBox } from "./menu";
