/** Everything that opens above a page, with the library that it is built of: one chunk. */

export { DialogBox } from "./dialog";
export { Host } from "./host";
export { MenuBox, PopoverBox } from "./menu";
