// @ts-check
// The log-in form works by itself; only the theme switch needs script.

import { wireBar } from "../lib/shell.js";

wireBar();
