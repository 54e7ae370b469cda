import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Keys } from "../ui/text";
import { KEYS } from "./places";

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
