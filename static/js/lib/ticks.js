// @ts-check
// Ticks for a time axis in the viewer's zone; Plotly itself knows only UTC.

import { clock, day, toField, fromField } from "./time.js";

const MINUTE = 60_000;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14400].map((minutes) => minutes * MINUTE);

/**
 * About six round instants between two; midnights carry the day.
 * @param {Date} from
 * @param {Date} to
 * @returns {{values: string[], labels: string[]}}
 */
export function zoneTicks(from, to) {
  const span = to.getTime() - from.getTime();
  const step = STEPS.find((size) => span / size <= 7) ?? STEPS[STEPS.length - 1];
  const midnight = fromField(`${toField(from).slice(0, 10)}T00:00`) ?? from;
  const values = [];
  const labels = [];
  for (let at = midnight.getTime(); at <= to.getTime(); at += step) {
    if (at < from.getTime()) continue;
    const date = new Date(at);
    const time = clock(date).slice(0, 5);
    values.push(date.toISOString().slice(0, 19).replace("T", " "));
    labels.push(time === "00:00" || step >= 1440 * MINUTE ? day(date) : time);
  }
  return { values, labels };
}
