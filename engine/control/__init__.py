"""Multiple choice by option likelihood, and sparse controllers over features of the last state."""
