import { ALL } from "../places";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Keys } from "../ui/text";

/** All keys and what they do, in two groups. */
const KEYS: [string, string][] = [
  ["Ctrl K", "Search or jump to"],
  ...ALL.map((to): [string, string] => [`g ${to.key}`, to.name]),
  ["/", "The page's search"],
  ["j k", "Next and previous row"],
  ["Arrows", "Move in a table, a list or a toolbar"],
  ["Enter", "Open the focused item"],
  ["x", "Select the row"],
  ["Shift x", "Extend the selection to the row"],
  [".", "Menu of the row or page"],
  ["p", "Pause or activate"],
  ["f", "Fork"],
  ["c", "Compare the selection"],
  ["[ ]", "Previous and next trial"],
  ["1 8", "Tabs 1 to 8"],
  ["z", "Full screen of a chart"],
  ["n N", "Next and previous error in a log"],
  ["u", "Undo the last action"],
  ["?", "All keys"],
];

export const KeyTable = () => (
  <table aria-label="Keys" className="keys">
    <tbody>
      {KEYS.map(([key, words]) => (
        <tr key={key}>
          <th scope="row">
            <Keys keys={key} />
          </th>
          <td>{words}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

export const Help = ({ onClose }: { onClose: () => void }) => (
  <Dialog wide title="Keys" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
    <KeyTable />
  </Dialog>
);
